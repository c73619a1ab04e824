#!/bin/sh
# Runs a test script in a new, empty folder: in_empty_folder.sh <folder> <script>. The folder
# stays when the test fails.
set -u
rm -rf "$1" && mkdir -p "$1" && cd "$1" || exit 1
bash "$2"
status=$?
[ $status != 0 ] || { cd / && rm -rf "$1"; }
exit $status
