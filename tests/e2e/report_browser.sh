# The report of a comparison in a real Chromium, without a window: the pages of test_report, at a desk's width and at a phone's,
# draw without an error, are no wider than the window, and no letter of a chart leaves it or covers another. As XHTML too, where the
# browser's parser forgives nothing. Pictures of one page, for people, are left in the build folder's tests/report.
set -eu

skip() { echo "SKIPPED: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

[ -z "$SANITIZERS" ] || skip "a browser proves no more with sanitizers"
browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $name) || true
done
[ -n "$browser" ] || skip "there is no Chromium; scripts/dependencies.sh --tests installs it"

# Root, as in containers, has no sandbox. Nothing here comes from a network, and nothing is to be asked of one.
browse() {
    timeout 600 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$PWD/profile" --enable-logging=stderr --virtual-time-budget=20000 "$@"
}

DESK=1280 PHONE=390

# with_script <page> <copy>: the page, and measure_page.js in it
with_script() { sed 's|</head>|<script src="measure_page.js"></script></head>|' "$1" > "$2"; }

# frames <page>,<width>...: a page that shows these in frames, and writes what they tell into <pre>. A browser's window is not as
# narrow as a phone; a frame can be.
frames() {
    echo '<!DOCTYPE html><html><body><pre>'
    echo '</pre><script>window.addEventListener("message", function (event) {'
    echo '  var told = event.data, lines = ["" + told.width, told.drawn + " charts"].concat(told.found).map(function (text) {'
    echo '    return told.page + "|" + text + "\n"; });'
    echo '  document.querySelector("pre").append(lines.join("")); });</script>'
    local each
    for each in "$@"; do
        echo "<iframe name=\"$each\" src=\"${each%,*}\" width=\"${each#*,}\" height=\"800\" style=\"border:0\"></iframe>"
    done
    echo '</body></html>'
}

# look <page>,<width>...: "page,width|measured width", "page,width|N charts" and "page,width|what is wrong" in told, the console's
# lines in console
look() {
    frames "$@" > frames.html
    browse --window-size=1400,900 --dump-dom "file://$PWD/frames.html" > dom 2> log || fail "Chromium ended with $?: $(tail -n 3 log)"
    sed -n '/<pre>/,/<\/pre>/{ s/<[^>]*>//g; p }' dom | grep '|' > told || true
    grep -a CONSOLE log > console || true
}

# verdict <page>,<width>...: why they are not in order, on stdout; nothing if they are
verdict() {
    local each
    look "$@"
    for each in "$@"; do
        grep -qxF "$each|${each#*,}" told || echo "$each did not answer, or has another width: $(grep -F "$each|" told)"
    done
    grep -vE '\|[0-9]+( charts)?$' told || true
    cat console
}

mkdir pages
"$BUILD_DIR/tests/test_report" pages
cp "$SOURCE_DIR/tests/e2e/lib/measure_page.js" .

# ---- every case ----

all=()
for page in pages/*.html; do
    name=$(basename "$page" .html)
    with_script "$page" "$name.html"
    with_script "$page" "$name.xhtml"
    all+=("$name.html,$DESK" "$name.html,$PHONE" "$name.xhtml,$DESK")
done
[ ${#all[@]} -ge 45 ] || fail "test_report wrote ${#all[@]} pages"
wrong=$(verdict "${all[@]}")
[ -z "$wrong" ] || fail "$wrong"
for each in "typical.html,$DESK|6" "typical.html,$PHONE|6" "typical.xhtml,$DESK|6" "one_step.html,$PHONE|6" "not_begun.html,$DESK|0"; do
    grep -qxF "$each charts" told || fail "expected $each charts: $(grep -F "${each%|*}|" told)"
done

# ---- what this test is to notice is noticed ----

# spoil <name>.<extension> <sed program>: typical.html, spoilt so that verdict has to name it
spoilt=()
spoil() {
    sed "$2" typical.html > "$1"
    cmp -s typical.html "$1" && fail "$1: nothing was spoilt"
    spoilt+=("$1")
}
spoil error_in_a_script.html 's|</body>|<script>not_there();</script></body>|'
spoil message_on_the_console.html 's|</body>|<script>console.error("oh")</script></body>|'
spoil too_wide.html 's|</main>|<p style="width:500px">wide</p></main>|'
spoil label_leaves_its_chart.html 's|<text x="[0-9.]*"|<text x="-90"|'
spoil labels_cover_each_other.html 's|<text x="[0-9.]*" y="[0-9.]*"|<text x="100" y="100"|'
spoil path_that_is_none.html '0,/ d="M/s// d="Mnan /'
spoil chart_without_size.html 's|^figure{|figure svg{height:1px!important}&|'
spoil no_style_sheet.html '/<style>/,/<\/style>/d'
spoil tag_that_is_not_closed.xhtml '0,/<\/h1>/s///'
found=$(verdict "${spoilt[@]/%/,$PHONE}")
for page in "${spoilt[@]}"; do
    [[ $found == *"$page"* ]] || fail "not noticed: $page; noticed: $found"
done

# ---- pictures ----

pictures=$BUILD_DIR/tests/report
mkdir -p "$pictures"
# picture <file> <page> <width> <height> [option of Chromium...]
picture() {
    local file=$pictures/$1 page=$2 size=$3,$4
    shift 4
    rm -f "$file"
    browse --window-size="$size" --screenshot="$file" "$@" "file://$PWD/$page" 2> log || fail "no picture: $(tail -n 3 log)"
    [ "$(head -c 4 "$file" | tail -c 3)" = PNG ] || fail "$file is no picture"
}
cp pages/typical.html page.html
echo "<body style=\"margin:0\"><iframe src=\"page.html\" style=\"border:0;width:${PHONE}px;height:4300px\"></iframe>" > phone.html
picture report-desktop.png page.html $DESK 2500
picture report-desktop-dark.png page.html $DESK 2500 --blink-settings=preferredColorScheme=0
picture report-phone.png phone.html 500 4300
cmp -s "$pictures/report-desktop.png" "$pictures/report-desktop-dark.png" && fail "the dark page is the light one"
rm -f "$pictures/report.pdf"
browse --no-pdf-header-footer --print-to-pdf="$pictures/report.pdf" "file://$PWD/page.html" 2> log || fail "no PDF: $(tail -n 3 log)"
[ "$(head -c 4 "$pictures/report.pdf")" = %PDF ] || fail "report.pdf is none"
[ "$(wc -c < "$pictures/report.pdf")" -gt 20000 ] || fail "report.pdf is empty"
echo "Looked at ${#all[@]} pages; pictures: $pictures"
