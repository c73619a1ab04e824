# The report of a comparison in a real Chromium, without a window: the pages of test_report, at a desk's width
# and at a phone's, draw without an error, are no wider than the window, and no letter of a chart leaves it or
# covers another. As XHTML too, where the browser's parser forgives nothing.
set -eu

skip() { echo "SKIPPED: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

[ -z "$SANITIZERS" ] || skip "a browser proves no more with sanitizers"
browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $name) || true
done
[ -n "$browser" ] || skip "there is no Chromium; scripts/dependencies.sh --tests installs it"

# Root, as in containers, has no sandbox. Nothing here comes from a network, and nothing
# is to be asked of one.
browse() {
    timeout 600 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$PWD/profile" --enable-logging=stderr --virtual-time-budget=20000 "$@"
}

DESK=1280 PHONE=390

# with_script <page> <copy>: the page, with measure_page.js in it
with_script() {
    local scripts='<script src="measure_page.js"></script>'
    sed "s|</head>|$scripts</head>|" "$1" > "$2"
}

# frames <page>,<width>...: a page that shows these in frames, and writes what they tell into <pre>. A
# browser's window is not as narrow as a phone; a frame can be.
frames() {
    echo '<!DOCTYPE html><html><body><pre>'
    echo '</pre><script>window.addEventListener("message", function (event) {'
    echo '  var told = event.data, what = ["" + told.width, told.drawn + " charts"].concat(told.found);'
    echo '  var lines = what.map(function (text) {'
    echo '    return told.page + "|" + text + "\n"; });'
    echo '  document.querySelector("pre").append(lines.join("")); });</script>'
    local each
    for each in "$@"; do
        echo "<iframe name=\"$each\" src=\"${each%,*}\" width=\"${each#*,}\" height=\"800\"" \
            'style="border:0"></iframe>'
    done
    echo '</body></html>'
}

# look <page>,<width>...: "page,width|measured width", "page,width|N charts" and "page,width|what is wrong" in
# told, the console's lines in console
look() {
    frames "$@" > frames.html
    browse --window-size=1400,900 --dump-dom "file://$PWD/frames.html" > dom 2> log ||
        fail "Chromium ended with $?: $(tail -n 3 log)"
    sed -n '/<pre>/,/<\/pre>/{ s/<[^>]*>//g; p }' dom | grep '|' > told || true
    grep -a CONSOLE log > console || true
}

# verdict <page>,<width>...: why they are not in order, on stdout; nothing if they are
verdict() {
    local each
    look "$@"
    for each in "$@"; do
        grep -qxF "$each|${each#*,}" told ||
            echo "$each did not answer, or has another width: $(grep -F "$each|" told)"
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
for each in "typical.html,$DESK|6" "typical.html,$PHONE|6" "typical.xhtml,$DESK|6" "one_step.html,$PHONE|6" \
    "not_begun.html,$DESK|0"; do
    grep -qxF "$each charts" told || fail "expected $each charts: $(grep -F "${each%|*}|" told)"
done

# ---- what they say ----

# says <page> <text>...: the page that was drawn holds them
says() {
    local page=$1 part
    shift
    browse --dump-dom "file://$PWD/pages/$page.html" > all 2> log || fail "Chromium: $(tail -n 3 log)"
    sed '/<script/,/<\/script>/d' all > dom
    for part in "$@"; do grep -qF -- "$part" dom || fail "$page: '$part' is not in the page"; done
}
says known '97.39 %<small>spread 0.84</small>' '−0.21<small>± 0.34</small>' '521<small>1.40×</small>' \
    '51.3<small>0.71×</small>' 'mAP@0.5:0.95' 'give -seeds 26, or -until 1.' \
    '−0.70 to +0.27' '1.30× to 1.50×' '>as good<' '>faster<' 'AMD EPYC 9R14' \
    'Darknet AMP 1.0 (61c9d02e)' '2026-11-20T19:30:00Z' '160 × 128 pixels, 3 classes' \
    '1200 iterations of 8 images' \
    '291 to train with, 73 to validate with' '>1, 2, 3<' 'lang="en"' 'scope="row"' \
    'fp16-runs: −6.84 points (−9.10 to 1e-05)' 'Scale 1 all the time: fp32, bf16.' 'None: fp32, bf16.'
! grep -q 'Interrupted' dom || fail 'what was not interrupted is called so'
says negative '>−100<'
says interrupted '<strong>Interrupted:</strong> 3 of 9 runs are done' 'not begun'
says all_failed '6 of 6 runs failed' 'every gradient is inf &lt;or&gt; "NaN" &amp; so on'
says diverging 'A run that failed goes beyond the upper edge'
! grep -q '>1e+' dom || fail 'a run that blew up stretches the axis'
says long_training 'median of 5000 steps'
says all_dtypes 'stock, fp32, bf16 and fp16 compared'
says alone '<h1 id="heading">fp32</h1>' 'The loss scale was 1 all the time. No step was skipped.'
says unpleasant_names "a&lt;b&gt;&amp;\"c'" 'ü 中'

# ---- in the dark, and on paper ----

browse --window-size=$DESK,2500 --screenshot=light.png "file://$PWD/pages/typical.html" 2> log &&
    browse --window-size=$DESK,2500 --screenshot=dark.png --blink-settings=preferredColorScheme=0 \
        "file://$PWD/pages/typical.html" 2> log || fail "no picture: $(tail -n 3 log)"
! cmp -s light.png dark.png || fail 'the dark page is the light one'
browse --no-pdf-header-footer --print-to-pdf=report.pdf "file://$PWD/pages/typical.html" 2> log ||
    fail "no PDF: $(tail -n 3 log)"
[ "$(head -c 4 report.pdf)" = %PDF ] && [ "$(wc -c < report.pdf)" -gt 20000 ] || fail "report.pdf is empty"
echo "Looked at ${#all[@]} pages"
