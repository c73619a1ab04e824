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

    window.addEventListener('load', function () {
        var drawn = 0;
        try {
            checkPage();
            drawn = checkCharts();
        } catch (problem) {
            say('error: ' + problem.message);
        }
        window.parent.postMessage({ page: window.name, width: window.innerWidth, drawn: drawn, found: found }, '*');
    });
}());
