# Real images for tests, which are never part of the repository: unpack <name> finds <name>.tar.gz
# in DARKNET_AMP_DATA (default: shared/data beside the checkout) and unpacks it into the current
# folder, or skips the test.
unpack() {
    local folder=${DARKNET_AMP_DATA:-$SOURCE_DIR/../shared/data}
    [ -f "$folder/$1.tar.gz" ] ||
        skip "the images of $1 are not here: put $1.tar.gz into a folder and name it in DARKNET_AMP_DATA"
    tar xzf "$folder/$1.tar.gz"
}
