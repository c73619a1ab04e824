/* The axes of the report's charts (report.html): where a value lies, where the ticks are, and what stands at
 * them. Put into a page by report_browser.sh, before measure_page.js, which hears of what is thrown here. */
window.addEventListener('load', () => {
    'use strict';
    function fail(...words) { throw new Error(words.join(' ')); }
    function near(got, expected, what) { if (!(Math.abs(got - expected) < 1e-6)) fail(what, got, expected); }
    function check(expected, kind, low, high, count) {
        const axis = makeAxis(kind, low, high, count, 0, 1);
        const labels = ticksOf(axis).map(tick => labelOf(axis, tick)).join(' ');
        if (labels !== expected) fail(kind, 'axis:', labels, 'instead of', expected);
    }

    check('0 200 400 600 800 1000 1200', 'linear', 0, 1130, 6);
    check('−4 −3 −2 −1 0 1', 'linear', -3.2, 1, 5);
    check('0.950 0.955 0.960 0.965 0.970 0.975', 'linear', .9541, .9712, 4);
    check('0 100k 200k 300k 400k 500k', 'linear', 0, 500000, 5);
    check('0 5M 10M 15M', 'linear', 0, 12345678, 4);
    check('0.5 1 2 5 10 20 50 100 200 500', 'log10', .5, 500, 6);
    check('1024 2048 4096 8192 16384 32768 65536', 'log2', 1024, 65536, 6);
    check('2⁻¹⁶ 2⁻¹⁰ 2⁻⁴ 2² 2⁸ 2¹⁴ 2²⁰', 'log2', 3e-5, 1 << 20, 6);
    check('2⁻¹ 2⁰ 2¹', 'log2', 1, 1, 6);

    const axis = makeAxis('linear', 0, 1130, 6, 100, 700);
    near(at(axis, 300), 250, 'a share of a linear axis');
    near(at(axis, -5), 100, 'a value below the axis');
    near(at(axis, 1e30), 700, 'a value above the axis');
    near(at(makeAxis('linear', 0, 10, 5, 300, 0), 4), 180, 'an axis that grows downwards');
    near(at(makeAxis('log10', .5, 500, 6, 0, 300), 5), 100, 'a share of a logarithmic axis');
    near(at(makeAxis('log2', 1024, 65536, 6, 0, 600), 4096), 200, 'a share of an axis of doublings');
    near(at(makeAxis('log10', 1, 100, 5, 0, 100), -1), 0, 'a value that has no logarithm');

    const ranges = [[0, 0], [2.5, 2.5], [-7, -7], [1e-300, 1e-300], [1e30, 1e30], [-1e38, 3e38], [5, 1],
        [NaN, 1], [0, Infinity], [-Infinity, Infinity], [1, 1.0000000001], [-1, 0], [1e-38, 3e38]];
    for (const [low, high] of ranges)
        for (const kind of ['linear', 'log10', 'log2'])
            for (let count = 3; count <= 10; ++count) {
                const odd = makeAxis(kind, low, high, count, 10, 90), ticks = ticksOf(odd);
                const places = ticks.map(tick => at(odd, tick));
                const labels = ticks.map(tick => labelOf(odd, tick));
                const rise = places.every((x, i) => x >= (i ? places[i - 1] + 1e-9 : 10) && x <= 90);
                if (!(odd.low < odd.high) || ticks.length < 2 || ticks.length > 31 || !rise)
                    fail(kind, low, high, 'has ticks', ticks, 'at', places);
                if (labels.some(label => label.length > 12)) fail(kind, low, high, 'has labels', labels);
            }
});
