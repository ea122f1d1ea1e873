// The charts of the page Now: the last ten minutes, a point a second. Each has its values in words beside it.
'use strict';
(() => {
  const KEPT = 600;
  const charts = [];
  function token(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  const colours = ['--series-1', '--series-3', '--series-4'];
  function shown(value, unit) {
    if (value === null || value === undefined) return '–';
    return value.toLocaleString('en', {maximumFractionDigits: value < 10 ? 2 : 0}) + (unit ? ' ' + unit : '');
  }
  function draw(place) {
    const names = place.dataset.series.split(' '), labels = place.dataset.labels.split('|');
    const data = [samples.map(each => each.time), ...names.map(name => samples.map(each => each[name]))];
    const size = () => ({width: Math.max(200, place.clientWidth), height: 160});
    const axis = {stroke: token('--ink-soft'), grid: {stroke: token('--line'), width: 1}, ticks: {show: false}, font: '11px system-ui'};
    place.replaceChildren();
    const chart = new uPlot({
      ...size(),
      cursor: {points: {size: 6}},
      legend: {show: false},
      scales: {y: {range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1]}},
      axes: [
        {...axis, values: '{HH}:{mm}:{ss}', space: 90, size: 26},
        {...axis, size: 54, values: (_, ticks) => ticks.map(each => shown(each))},
      ],
      series: [{}, ...names.map((name, number) => ({
        label: labels[number], stroke: token(colours[number]), width: 1.5, spanGaps: false, points: {show: false},
        fill: number === 0 && names.length === 1 ? token('--accent-soft') : undefined,
      }))],
    }, data, place);
    charts.push({place, chart, names, size});
  }
  function tell(figure, sample) {
    for (const each of figure.querySelectorAll('[data-series-value]')) {
      const text = shown(sample[each.dataset.seriesValue], each.dataset.unit);
      if (each.textContent !== text) each.textContent = text;
    }
  }
  let samples = [];
  function drawAll() {
    charts.splice(0).forEach(each => each.chart.destroy());
    document.querySelectorAll('.chart').forEach(draw);
  }
  document.addEventListener('DOMContentLoaded', () => {
    samples = JSON.parse(document.getElementById('samples').textContent);
    drawAll();
    if (samples.length) document.querySelectorAll('.charts figure').forEach(each => tell(each, samples.at(-1)));
    addEventListener('resize', () => charts.forEach(each => each.chart.setSize(each.size())));
  });
  document.addEventListener('headgate:theme', drawAll);
  document.addEventListener('headgate:sample', event => {
    if (document.querySelector('[data-hold]')?.getAttribute('aria-pressed') === 'true') return;
    samples.push(event.detail);
    if (samples.length > KEPT) samples = samples.slice(-KEPT);
    const times = samples.map(each => each.time);
    for (const {place, chart, names} of charts) {
      chart.setData([times, ...names.map(name => samples.map(each => each[name]))]);
      tell(place.closest('figure'), event.detail);
    }
  });
})();
