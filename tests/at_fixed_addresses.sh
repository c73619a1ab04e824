#!/bin/sh
# Runs a command without address space randomisation where the system allows that. ThreadSanitizer of gcc 12
# maps its shadow at fixed places, and ends with "unexpected memory mapping" on kernels that spread addresses
# over more than 30 bits.
machine=$(uname -m)
if setarch "$machine" -R true 2> /dev/null; then exec setarch "$machine" -R "$@"; fi
exec "$@"
