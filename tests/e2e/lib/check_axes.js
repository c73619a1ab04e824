/* The axes of the report's charts (report.html): where a value lies, where the ticks are, and what stands at them. Put
 * into a page by report_browser.sh, before measure_page.js, which hears of what is thrown here. */
window.addEventListener('load', function () {
    'use strict';
    function same(got, expected, what) { if (got !== expected) throw new Error(what + ': ' + got + ' is not ' + expected); }
    function near(got, expected, what) { if (!(Math.abs(got - expected) < 1e-6)) same(got, expected, what); }
    function labels(axis) { return ticksOf(axis).map(function (tick) { return labelOf(axis, tick); }).join(' '); }
    function check(expected, kind, low, high, count) { same(labels(makeAxis(kind, low, high, count, 0, 1)), expected, kind); }

    check('0 200 400 600 800 1000 1200', 'linear', 0, 1130, 6);
    check('−4 −3 −2 −1 0 1', 'linear', -3.2, 1, 5);
    check('0.950 0.955 0.960 0.965 0.970 0.975', 'linear', .9541, .9712, 4);
    check('0 100k 200k 300k 400k 500k', 'linear', 0, 500000, 5);
    check('0 5M 10M 15M', 'linear', 0, 12345678, 4);
    check('0.5 1 2 5 10 20 50 100 200 500', 'log10', .5, 500, 6);
    check('1024 2048 4096 8192 16384 32768 65536', 'log2', 1024, 65536, 6);
    check('2⁻¹⁶ 2⁻¹⁰ 2⁻⁴ 2² 2⁸ 2¹⁴ 2²⁰', 'log2', 3e-5, 1 << 20, 6);
    check('2⁻¹ 2⁰ 2¹', 'log2', 1, 1, 6);

    var axis = makeAxis('linear', 0, 1130, 6, 100, 700), down = makeAxis('linear', 0, 10, 5, 300, 0);
    near(at(axis, 300), 250, 'a share of a linear axis');
    near(at(down, 4), 180, 'an axis that grows downwards');
    near(at(makeAxis('log10', .5, 500, 6, 0, 300), 5), 100, 'a share of a logarithmic axis');
    near(at(makeAxis('log2', 1024, 65536, 6, 0, 600), 4096), 200, 'a share of an axis of doublings');
    near(at(axis, -5), 100, 'a value below the axis');
    near(at(axis, 1e30), 700, 'a value above the axis');
    near(at(makeAxis('log10', 1, 100, 5, 0, 100), -1), 0, 'a value that has no logarithm');

    [[0, 0], [2.5, 2.5], [-7, -7], [1e-300, 1e-300], [1e30, 1e30], [-1e38, 3e38], [5, 1], [NaN, 1], [0, Infinity],
        [-Infinity, Infinity], [1, 1.0000000001], [-1, 0], [1e-38, 3e38]].forEach(function (range) {
        ['linear', 'log10', 'log2'].forEach(function (kind) {
            for (var count = 3; count <= 10; ++count) {
                var odd = makeAxis(kind, range[0], range[1], count, 10, 90), ticks = ticksOf(odd), what = kind + ' ' + range;
                if (!(odd.low < odd.high) || ticks.length < 2 || ticks.length > 31) throw new Error(what + ': ' + ticks);
                ticks.forEach(function (tick, i) {
                    var place = at(odd, tick);
                    if (place < 10 || place > 90 || (i && place <= at(odd, ticks[i - 1]))) throw new Error(what + ' at ' + place);
                    if (labelOf(odd, tick).length > 12) throw new Error(what + ': label ' + labelOf(odd, tick));
                });
            }
        });
    });
});
