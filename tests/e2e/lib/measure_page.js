/* Put into a copy of a report by report_browser.sh: tells the page around it what went wrong, in one message. */
(function () {
    'use strict';
    var found = [];

    function say(text) { if (found.length < 20) found.push(text); }
    window.addEventListener('error', function (event) { say('error: ' + event.message); });

    function name(element) { return '"' + element.textContent.slice(0, 40) + '"'; }

    function checkPage() {
        var width = document.documentElement.scrollWidth;
        if (width > window.innerWidth) say('the page is ' + width + ' wide, the window ' + window.innerWidth);
        if (document.body.getBoundingClientRect().height < 100) say('the page is empty');
        if (getComputedStyle(document.body).maxWidth === 'none') say('there is no style sheet');
    }

    /* Two letters' boxes may touch by this much: a box is as high as the line, the letters are not. */
    var TOUCH = 1.5;

    function overlap(a, b) {
        return Math.min(a.right, b.right) - Math.max(a.left, b.left) > TOUCH &&
               Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2 * TOUCH;
    }

    function checkTexts(svg, frame) {
        var texts = Array.prototype.slice.call(svg.querySelectorAll('text'));
        var boxes = texts.map(function (text) { return text.getBoundingClientRect(); });
        texts.forEach(function (text, i) {
            var box = boxes[i];
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
                say(svg.id + ': ' + name(text) + ' leaves the drawing');
            if (box.height < 10) say(svg.id + ': ' + name(text) + ' is only ' + box.height + ' high');
            for (var k = 0; k < i; ++k) if (overlap(box, boxes[k])) say(svg.id + ': ' + name(text) + ' covers ' + name(texts[k]));
        });
    }

    function checkChart(svg, frame) {
        checkTexts(svg, frame);
        Array.prototype.forEach.call(svg.querySelectorAll('path, rect'), function (shape) {
            var box = shape.getBBox();
            if (!isFinite(box.width) || !isFinite(box.height)) say(svg.id + ': a shape without a size');
            if (shape.classList.contains('mark') && box.width < 2) say(svg.id + ': a marker that is not drawn');
        });
    }

    /* The drawings that are shown: one of each figure, if it has any. How many there are. */
    function checkCharts() {
        var drawn = 0;
        Array.prototype.forEach.call(document.querySelectorAll('figure'), function (figure) {
            var shown = 0, all = figure.querySelectorAll('svg');
            Array.prototype.forEach.call(all, function (svg) {
                if (getComputedStyle(svg).display === 'none') return;
                var frame = svg.getBoundingClientRect();
                ++shown;
                if (frame.width < 100 || frame.height < 20) say(svg.id + ' is ' + frame.width + ' by ' + frame.height);
                checkChart(svg, frame);
            });
            drawn += all.length > 0;
            if (all.length && shown !== 1) say('of the drawings of ' + name(figure) + ' ' + shown + ' are shown');
        });
        if (document.querySelectorAll('figure').length !== 6) say('there are not six charts');
        return drawn;
    }

    /* ---- what is drawn against the JSON: `report`, `dtypes` and `scores` are the page's ---- */

    function all(selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); }
    function first(path) { return parseFloat(path.getAttribute('d').slice(1)); }

    /* Bars are as long as their numbers; drawn in tenths. */
    function checkBars(id, keys) {
        var bars = all('#' + id + ' rect.bar'), unit = 0;
        dtypes.forEach(function (one) {
            keys.forEach(function (key) {
                if (!(one[key].mean > 0)) return;
                var width = parseFloat(bars.shift().getAttribute('width'));
                unit = unit || width / one[key].mean;
                if (Math.abs(width - unit * one[key].mean) > .05 + width * .005) say(id + ': a bar of ' + width + ' for ' + one[key].mean);
            });
        });
        if (bars.length) say(id + ': ' + bars.length + ' bars more than numbers');
    }

    /* Marks lie in proportion, and none on the gap of an axis that does not begin at 0. */
    function checkScores(key) {
        var marks = all('#' + key + '-wide path.dot'), values = [], gap = 0;
        dtypes.forEach(function (one) { one.runs.forEach(function (run) { if (run[key] !== null) values.push(run[key]); }); });
        if (marks.length !== values.length) { say(key + ': ' + marks.length + ' marks for ' + values.length + ' scores'); return; }
        var low = values.indexOf(Math.min.apply(null, values)), high = values.indexOf(Math.max.apply(null, values));
        marks.forEach(function (mark, i) {
            var share = (values[i] - values[low]) / (values[high] - values[low] || 1);
            var place = first(marks[low]) + share * (first(marks[high]) - first(marks[low]));
            if (Math.abs(first(mark) - place) > .2) say(key + ': a mark at ' + first(mark) + ' instead of ' + place);
        });
        all('#' + key + '-wide path.axis').forEach(function (line) {
            var ends = line.getAttribute('d').match(/-?[0-9.]+/g).map(Number);
            if (ends[0] === ends[2] || ends[1] === ends[3]) return;
            ++gap;
            if (marks.length && Math.max(ends[0], ends[2]) >= first(marks[low])) say(key + ': a mark on the gap');
        });
        if (gap && gap !== 2) say(key + ': a gap of ' + gap + ' strokes');
    }

    /* The line begins at its first scale, where the axis has a label for it, and every skipped step has its tick. */
    function checkScales() {
        dtypes.forEach(function (one) {
            var run = one.runs[0], line = document.querySelector('#scale-wide path.k' + one.slot + '.scale');
            all('#scale-wide text.tick').forEach(function (tick) {
                if (!line || !run.scale.length || tick.textContent !== String(run.scale[0])) return;
                var height = Number(line.getAttribute('d').match(/^M[0-9.]+ ([0-9.]+)/)[1]);
                if (Math.abs(height - (Number(tick.getAttribute('y')) - 4)) > .2) say('the first scale is drawn at ' + height);
            });
            var strip = document.querySelector('#scale-wide path.k' + one.slot + '.skip');
            var ticks = strip ? strip.getAttribute('d').split('M').length - 1 : 0, steps = {};
            one.runs.forEach(function (run) { run.skipped_at.forEach(function (step) { steps[step] = 1; }); });
            if (ticks > Object.keys(steps).length || (report.iterations <= 1200 && ticks < Object.keys(steps).length))
                say(one.dtype + ': ' + ticks + ' ticks for ' + Object.keys(steps).length + ' skipped steps');
        });
    }

    window.addEventListener('load', function () {
        var drawn = 0;
        try {
            checkPage();
            drawn = checkCharts();
            checkBars('throughput-wide', ['images_per_second', 'compute_images_per_second']);
            checkBars('memory-narrow', ['peak_memory_mb']);
            scores.forEach(function (score) { checkScores(score.key); });
            checkScales();
        } catch (problem) {
            say('error: ' + problem.message);
        }
        window.parent.postMessage({ page: window.name, width: window.innerWidth, drawn: drawn, found: found }, '*');
    });
}());
