# Reads hank-ai's headers and prints their structs and enums as C11 declares them:
#
#   awk -f structs.awk darknet.h darknet_internal.hpp darknet_enums.hpp darknet_layers.hpp darknet_network.hpp
#
# A reference becomes a pointer, because calls pass it as one. An enum class becomes an enum. Types get the
# names that they have in AlexeyAB's Darknet. Fields lose the ending _unused, which AlexeyAB's do not have.
# The output is not kept in the repository: the build makes it from the headers that it compiles.
function strip(line,   at) { # removes comments, and spaces at both ends
    while (in_comment || (at = index(line, "/*"))) {
        if (in_comment) {
            at = index(line, "*/")
            if (!at) return ""
            line = substr(line, at + 2)
            in_comment = 0
        } else {
            before = substr(line, 1, at - 1)
            line = substr(line, at)
            in_comment = 1
            at = index(substr(line, 3), "*/")
            if (!at) return trim(before)
            line = before " " substr(line, at + 4)
            in_comment = 0
        }
    }
    sub(/\/\/.*/, "", line)
    return trim(line)
}
function trim(text) { gsub(/^[ \t]+|[ \t\r]+$/, "", text); return text }
function as_c(text) {
    gsub(/Darknet::/, "", text)
    gsub(/NetworkDetails/, "struct NetworkDetails", text)
    gsub(/NetworkState/, "struct network_state", text)
    gsub(/ELayerType::/, "", text)
    gsub(/ELayerType/, "LAYER_TYPE", text)
    gsub(/Layer &/, "struct layer *", text)
    gsub(/Layer \*/, "struct layer *", text)
    gsub(/Network net/, "struct network net", text)
    gsub(/Detection \*/, "detection *", text)
    gsub(/Image \*/, "image *", text)
    gsub(/Box \*/, "box *", text)
    gsub(/Tree \*/, "tree *", text)
    return text
}
{ line = strip($0) }
line == "" { next }
!inside && line ~ /^typedef (struct|enum)/ && line ~ /;$/ {
    if (line ~ /^typedef struct [A-Za-z]+ [a-z]+;$/ || line ~ /^typedef enum/) print as_c(line)
    next
}
!inside && (line ~ /^typedef (struct|enum)/ || line ~ /^struct (Layer final|Network|NetworkState)$/ ||
            line == "enum class ELayerType") {
    inside = 1
    ending = "" # "": print the typedef's own last line
    if (line ~ /Layer final$/) { line = "typedef struct layer"; ending = "} layer;" }
    else if (line ~ /^struct NetworkState/) {
        line = "typedef struct network_state"; ending = "} network_state;"
    } else if (line ~ /^struct Network/) {
        line = "typedef struct network"; ending = "} network;"
    } else if (line ~ /ELayerType/) {
        line = "typedef enum LAYER_TYPE"; ending = "AMP_OTHER_LAYERS } LAYER_TYPE;"
    }
    print as_c(line)
    next
}
inside && line ~ /^}/ {
    print ending != "" ? ending : (line ~ /data_type/ ? "AMP_OTHER_DATA " : "") as_c(line)
    inside = 0
    next
}
inside && line != "public:" {
    line = as_c(line)
    gsub(/_unused;/, ";", line)
    print line
}
