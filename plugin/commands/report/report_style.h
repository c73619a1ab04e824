/* The report's style sheet. Dtypes' colours are Okabe and Ito's, which all kinds of colour vision tell apart; dashes and markers
 * differ too. No character that XML would want escaped. */
#ifndef AMP_COMMANDS_REPORT_REPORT_STYLE_H
#define AMP_COMMANDS_REPORT_REPORT_STYLE_H

static const char *const amp_report_style[] = {
    /* Colours, by day, by night, and on paper. */
    ":root{color-scheme:light dark;--page:#fff;--card:#f6f7f9;--ink:#1a1d21;--soft:#565d66;--rule:#d9dde2;--grid:#e4e7eb;",
    "--k0:#0072b2;--k1:#00896a;--k2:#d55e00;--k3:#5f6670;--k4:#a8457f}\n",
    "@media screen and (prefers-color-scheme:dark){:root{--page:#14171a;--card:#1d2125;--ink:#e8eaed;--soft:#a3abb5;",
    "--rule:#3a4149;--grid:#2a3036;--k0:#56b4e9;--k1:#2fc79b;--k2:#f5a623;--k3:#b0b7c0;--k4:#e08fc0}}\n",
    ".k0{--c:var(--k0)}.k1{--c:var(--k1)}.k2{--c:var(--k2)}.k3{--c:var(--k3)}.k4{--c:var(--k4)}\n",
    /* The page. */
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}\n",
    "body{margin:0 auto;max-width:1144px;padding:32px 32px 48px;background:var(--page);color:var(--ink);",
    "font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"DejaVu Sans\",sans-serif;",
    "overflow-wrap:anywhere}\n",
    "h1{font-size:30px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}",
    "h2{font-size:21px;line-height:1.3;margin:44px 0 12px}\n",
    "h3{font-size:17px;line-height:1.3;margin:0}p{margin:0 0 12px}.soft,figcaption p,.note{color:var(--soft)}",
    ".date{white-space:nowrap}.note{font-size:13px;line-height:1.45;margin:8px 0 0}\n",
    ".verdict{margin:24px 0 0;padding:18px 22px;background:var(--card);border-left:4px solid var(--k0);border-radius:4px}\n",
    ".verdict h2{margin:0 0 6px;font-size:17px}.verdict ul{margin:0;padding-left:20px}.verdict li+li{margin-top:6px}\n",
    ".warning{margin:20px 0 0;padding:12px 22px;border:1px solid var(--k2);border-left-width:4px;border-radius:4px}\n",
    /* Tables. */
    ".wide-box{overflow-x:auto;border:1px solid var(--rule);border-radius:4px}\n",
    ".wide-box:focus-visible{outline:2px solid var(--k0);outline-offset:2px}\n",
    "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums;overflow-wrap:normal}\n",
    "th,td{padding:8px 9px;text-align:right;vertical-align:top;white-space:nowrap;border-top:1px solid var(--grid)}\n",
    "thead th{border-top:0;background:var(--card);vertical-align:bottom;font-weight:600;line-height:1.3}\n",
    "th:first-child{text-align:left}tbody th{font-weight:600}td.text,th.text{text-align:left}\n",
    "th:first-child,td.failure{padding-left:14px}th:last-child,td:last-child{padding-right:14px}\n",
    "@media screen{tbody th:first-child,thead th:first-child{position:sticky;left:0}",
    "tbody th:first-child{background:var(--page)}}\n",
    "td.failure{text-align:left;white-space:normal;border-top:0;padding-top:0;overflow-wrap:anywhere}\n",
    "td small,th small{display:block;font-size:12px;font-weight:400;color:var(--soft)}\n",
    /* Charts. */
    ".legend{display:flex;flex-wrap:wrap;gap:4px 22px;margin:0 0 8px;padding:0;list-style:none;font-size:15px}\n",
    ".legend li{display:flex;align-items:center;gap:8px}.legend svg{flex:none}\n",
    ".charts{display:grid;grid-template-columns:1fr 1fr;gap:32px 20px}.full{grid-column:1/-1}\n",
    "figure{margin:0;min-width:0;display:flex;flex-direction:column}figure svg{margin-top:auto}",
    "figcaption p{font-size:14px;line-height:1.4;margin:2px 0 8px}\n",
    "svg{display:block;max-width:100%;height:auto;overflow:visible}svg.narrow{display:none}\n",
    "svg text{font-size:13px;fill:var(--ink);font-variant-numeric:tabular-nums}svg .tick,svg .name{fill:var(--soft)}\n",
    "svg .label,svg .value{font-weight:600}",
    "svg text{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}\n", /* covers grid lines */
    ".axis{stroke:var(--soft);stroke-width:1;fill:none}.grid{stroke:var(--grid);stroke-width:1}\n",
    ".strip{fill:var(--card)}\n",
    ".line,.seed,.scale,.skip,.leader,.range,.mean{fill:none;stroke:var(--c)}",
    ".line{stroke-width:2.25;stroke-linejoin:round}\n",
    ".seed{stroke-width:1;opacity:.38}.scale{stroke-width:1.5;opacity:.75}.skip{stroke-width:1.5}\n",
    ".leader{stroke-width:1;opacity:.6}.range{stroke-width:3;opacity:.35}.mean{stroke-width:3}\n",
    "path.k1.line{stroke-dasharray:9 3}path.k2.line{stroke-dasharray:3 2.5}path.k3.line{stroke-dasharray:12 3 2 3}\n",
    "path.k4.line{stroke-dasharray:5 5}.mark{fill:var(--c)}path.k4.mark{fill:none;stroke:var(--c);stroke-width:2}\n",
    ".dot{fill:var(--c);fill-opacity:.55;stroke:var(--c)}.bar{fill:var(--c)}.bar.light{fill-opacity:.3;stroke:var(--c)}\n",
    /* Facts. */
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:6px 20px;margin:0}dt{color:var(--soft)}dd{margin:0}\n",
    "footer{margin-top:44px;padding-top:12px;border-top:1px solid var(--rule);color:var(--soft);font-size:14px}\n",
    /* A phone. */
    "@media screen and (max-width:760px){body{padding:20px 16px 32px}h1{font-size:25px}.charts{grid-template-columns:1fr}\n",
    "svg.wide{display:none}svg.narrow{display:block;margin:auto auto 0}dl{grid-template-columns:1fr;gap:0}",
    "dd{margin-bottom:10px}\n",
    ".verdict{padding:14px 16px}th,td{padding:7px 9px}}\n",
    /* Paper. */
    "@page{size:A4;margin:14mm}\n",
    "@media print{:root{color-scheme:light}body{max-width:none;padding:0;font-size:10.5pt}h1{font-size:20pt}\n",
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}figure,tr,.verdict,.warning,dl{break-inside:avoid}\n",
    "h2,h3,figcaption,.legend{break-after:avoid}.wide-box{overflow:visible;border:0}table{font-size:8pt}\n",
    "th,td{padding:3pt 4pt}th,td.failure{white-space:normal}td small,th small{font-size:7pt}.charts{gap:20px 16px}",
    "thead{display:table-header-group}}\n",
};

#endif
