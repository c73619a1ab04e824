/* Put into a copy of a report by report_browser.sh: tells the page around it what went wrong, in one
 * message. */
(function () {
    'use strict';
    const found = [], all = selector => [...document.querySelectorAll(selector)];

    function say(text) { if (found.length < 20) found.push(text); }
    window.addEventListener('error', function (event) { say('error: ' + event.message); });

    function name(element) { return '"' + element.textContent.slice(0, 40) + '"'; }

    function checkPage() {
        const width = document.documentElement.scrollWidth;
        if (width > window.innerWidth) say('the page is ' + width + ' wide, the window ' + window.innerWidth);
        if (document.body.getBoundingClientRect().height < 100) say('the page is empty');
        if (getComputedStyle(document.body).maxWidth === 'none') say('there is no style sheet');
    }

    /* Two letters' boxes may touch by this much: a box is as high as the line, the letters are not. */
    const TOUCH = 1.5;

    function overlap(a, b) {
        return Math.min(a.right, b.right) - Math.max(a.left, b.left) > TOUCH &&
               Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2 * TOUCH;
    }

    function checkTexts(svg, frame) {
        const texts = [...svg.querySelectorAll('text')];
        const boxes = texts.map(text => text.getBoundingClientRect());
        texts.forEach((text, i) => {
            const box = boxes[i];
            if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
                say(`${svg.id}: ${name(text)} leaves the drawing`);
            if (box.height < 10) say(`${svg.id}: ${name(text)} is only ${box.height} high`);
            for (let k = 0; k < i; ++k)
                if (overlap(box, boxes[k])) say(`${svg.id}: ${name(text)} covers ${name(texts[k])}`);
        });
    }

    function checkChart(svg) {
        const frame = svg.getBoundingClientRect();
        if (frame.width < 100 || frame.height < 20) say(`${svg.id} is ${frame.width} by ${frame.height}`);
        checkTexts(svg, frame);
        for (const shape of svg.querySelectorAll('path, rect')) {
            const box = shape.getBBox();
            if (!isFinite(box.width) || !isFinite(box.height)) say(`${svg.id}: a shape without a size`);
            if (shape.classList.contains('mark') && box.width < 2) say(`${svg.id}: a mark that is not drawn`);
        }
    }

    /* The drawings that are shown: one of each figure, if it has any. How many there are. */
    function checkCharts() {
        const drawn = all('figure').map(figure => [...figure.querySelectorAll('svg')])
            .filter(drawings => drawings.length);
        for (const drawings of drawn) {
            const shown = drawings.filter(svg => getComputedStyle(svg).display !== 'none');
            shown.forEach(checkChart);
            if (shown.length !== 1) say(`of the drawings of ${drawings[0].id} ${shown.length} are shown`);
        }
        if (all('figure').length !== 6) say('there are not six charts');
        return drawn.length;
    }

    /* ---- what is drawn against the JSON: `report`, `dtypes` and `scores` are the page's ---- */

    const placeOf = mark => parseFloat(mark.getAttribute('d').slice(1));

    /* Bars are as long as their numbers; drawn in tenths. */
    function checkBars(id, keys) {
        const widths = all(`#${id} rect.bar`).map(bar => Number(bar.getAttribute('width')));
        const means = dtypes.flatMap(one => keys.map(key => one[key].mean)).filter(mean => mean > 0);
        const unit = Math.max(...widths) / Math.max(...means);
        const wrong = widths.some((width, i) => Math.abs(width - unit * means[i]) > .25);
        if (widths.length !== means.length || wrong)
            say(`${id}: bars of ${widths} for ${means}`);
    }

    /* Marks lie in proportion, and none on the gap of an axis that does not begin at 0. */
    function checkScores(key) {
        const places = all(`#${key}-wide path.dot`).map(placeOf);
        const values = dtypes.flatMap(one => one.runs.map(run => run[key])).filter(value => value !== null);
        if (!values.length && !places.length) return;
        const low = Math.min(...values), left = Math.min(...places);
        const unit = (Math.max(...places) - left) / (Math.max(...values) - low || 1);
        const expected = values.map(value => left + unit * (value - low));
        if (places.length !== values.length || places.some((x, i) => Math.abs(x - expected[i]) > .2))
            say(`${key}: marks at ${places} for ${values}`);
        for (const line of all(`#${key}-wide path.axis`)) {
            const [x0, y0, x1, y1] = line.getAttribute('d').match(/-?[0-9.]+/g).map(Number);
            if (x0 !== x1 && y0 !== y1 && Math.max(x0, x1) >= left) say(`${key}: a mark on the gap`);
        }
    }

    /* The line begins at its first scale, if a label of the axis tells where that is, and every skipped step
       has its tick. */
    function checkScales(one) {
        const line = document.querySelector(`#scale-wide path.k${one.slot}.scale`);
        const begin = String(one.runs[0].scale[0]);
        const first = all('#scale-wide text.tick').find(tick => tick.textContent === begin);
        if (line && first) {
            const height = Number(line.getAttribute('d').match(/^M[0-9.]+ ([0-9.]+)/)[1]);
            const expected = Number(first.getAttribute('y')) - 4;
            if (Math.abs(height - expected) > .2) say(`the first scale is drawn at ${height}`);
        }
        const strip = document.querySelector(`#scale-wide path.k${one.slot}.skip`);
        const ticks = strip ? strip.getAttribute('d').split('M').length - 1 : 0;
        const skipped = new Set(one.runs.flatMap(run => run.skipped_at)).size;
        if (ticks > skipped || (report.iterations <= 1200 && ticks < skipped))
            say(`${one.dtype}: ${ticks} ticks for ${skipped} skipped steps`);
    }

    window.addEventListener('load', function () {
        let drawn = 0;
        try {
            checkPage();
            drawn = checkCharts();
            checkBars('throughput-wide', ['images_per_second', 'compute_images_per_second']);
            checkBars('memory-narrow', ['peak_memory_mb']);
            scores.forEach(score => checkScores(score.key));
            dtypes.forEach(checkScales);
        } catch (problem) {
            say('error: ' + problem.message);
        }
        window.parent.postMessage({ page: window.name, width: window.innerWidth, drawn: drawn, found: found },
                                  '*');
    });
}());
