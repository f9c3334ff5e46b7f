// Draws the charts of the report from the JSON in #run-data. Colours come from the style sheet, so that light and dark stay in one place.
// For `make look` the root element tells how it went: data-charts is the number of charts with something on them, data-error a script error.
"use strict";
(() => {
  const root = document.documentElement;
  window.addEventListener("error", (event) => { root.dataset.error = event.message; });

  const data = JSON.parse(document.getElementById("run-data").textContent);
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const points = (pairs) => pairs.map(([x, y]) => ({ x, y: y === null ? NaN : y }));
  const short = (value) => {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    return value.toLocaleString("en", { maximumSignificantDigits: 4 });
  };

  const curve = (label, pairs, ink, more = {}) => ({
    label, data: points(pairs), borderColor: ink, backgroundColor: ink, borderWidth: 1.5, pointRadius: pairs.length < 2 ? 3 : 0,
    pointHitRadius: 6, ...more,
  });

  // A dashed line where the run was started again.
  const resumeLines = {
    id: "resumeLines",
    beforeDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales: { x } } = chart;
      ctx.save();
      ctx.strokeStyle = colour("soft");
      ctx.setLineDash([4, 4]);
      for (const step of data.resumes) {
        const at = x.getPixelForValue(step);
        ctx.beginPath();
        ctx.moveTo(at, area.top);
        ctx.lineTo(at, area.bottom);
        ctx.stroke();
      }
      ctx.restore();
    },
  };

  const axis = (more = {}) => ({
    grid: { color: colour("line"), borderColor: colour("line") },
    ticks: { color: colour("soft"), callback: short, maxTicksLimit: 8 },
    ...more,
  });

  function options(legend, from_zero) {
    return {
      animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true, spanGaps: false,
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: {
        x: axis({ type: "linear", min: 0, max: data.last_step, ticks: { color: colour("soft"), precision: 0, maxTicksLimit: 10 } }),
        y: axis({ type: "linear", beginAtZero: from_zero }),
      },
      plugins: {
        legend: { display: legend, labels: { color: colour("ink"), usePointStyle: true, boxWidth: 8, boxHeight: 8 } },
        tooltip: {
          callbacks: {
            title: (items) => items.length ? "step " + items[0].parsed.x.toLocaleString("en") : "",
            label: (item) => `${item.dataset.label}: ${short(item.parsed.y)}`,
          },
        },
      },
    };
  }

  function lossCurves() {
    const sets = [
      curve("training", data.curves.loss, colour("faint"), { borderWidth: 1, order: 3 }),
      curve("training, averaged", data.curves.loss_smooth, colour("main"), { borderWidth: 2, order: 2 }),
    ];
    Object.entries(data.held_out).forEach(([name, pairs], index) => {
      const all = name === "all";
      const ink = all ? colour("ink") : colour("s" + index % 7);
      sets.push(curve((all ? "held out, " : "") + name, pairs, ink, { pointRadius: 3.5, borderWidth: all ? 2 : 1.5, borderDash: all ? [] : [3, 3], order: 1 }));
    });
    if (data.skips.length > 0) {
      sets.push(curve("skipped", data.skips, colour("alarm"),
        { showLine: false, pointStyle: "crossRot", pointRadius: 7, borderWidth: 2.5, order: 0 }));
    }
    return sets;
  }

  let charts = [];
  function draw() {
    charts.forEach((chart) => chart.destroy());
    const make = (id, datasets, settings) =>
      new Chart(document.getElementById(id), { type: "line", data: { datasets }, options: settings, plugins: [resumeLines] });
    charts = [make("loss", lossCurves(), options(true, false))];
    for (const name of ["lr", "grad_norm", "tokens_per_second", "mfu"])
      charts.push(make(name, [curve(name.replaceAll("_", " "), data.curves[name], colour("main"))], options(false, true)));
    root.dataset.charts = charts.filter(hasInk).length;
  }

  // Whether the middle of a chart, where only curves are, holds pixels in the colour of its first curve or any other strong one.
  function hasInk(chart) {
    const { left, top, width, height } = chart.chartArea;
    const ratio = chart.currentDevicePixelRatio;
    const bytes = chart.ctx.getImageData(left * ratio, top * ratio, Math.max(1, width * ratio), Math.max(1, height * ratio)).data;
    for (let i = 0; i < bytes.length; i += 4) {
      const strongest = Math.max(bytes[i], bytes[i + 1], bytes[i + 2]);
      if (bytes[i + 3] > 128 && strongest - Math.min(bytes[i], bytes[i + 1], bytes[i + 2]) > 48) return true;
    }
    return false;
  }

  draw();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
