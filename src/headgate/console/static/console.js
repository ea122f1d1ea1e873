// What pages do in the browser: theme, menu, keys, copying, times, live updates. No page needs it to be read.
'use strict';
(() => {
  const root = document.documentElement;
  const kept = (() => { try { return localStorage.getItem('headgate-theme'); } catch { return null; } })();
  if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }
  function changeTheme() {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try { localStorage.setItem('headgate-theme', root.dataset.theme); } catch { /* it lasts for this page */ }
    document.dispatchEvent(new CustomEvent('headgate:theme'));
  }

  // Times as people say them, beside the exact one.
  const relative = new Intl.RelativeTimeFormat('en', {numeric: 'auto'});
  const spans = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];
  function ago(text) {
    const seconds = (Date.parse(text) - Date.now()) / 1000;
    if (Math.abs(seconds) < 1) return 'now';
    const [unit, length] = spans.find(each => Math.abs(seconds) >= each[1]);
    return relative.format(Math.round(seconds / length), unit);
  }
  function tellTimes(within) {
    for (const each of within.querySelectorAll('time[data-ago]')) {
      each.title = each.dateTime;
      const text = ago(each.dateTime);
      if (each.textContent !== text) each.textContent = text;
    }
  }

  async function copy(button) {
    const text = button.closest('.row').nextElementSibling.textContent;
    let told = 'Copied';
    try { await navigator.clipboard.writeText(text); } catch { told = 'Select it and copy by hand'; }
    const before = button.textContent;
    button.textContent = told;
    setTimeout(() => { button.textContent = before; }, 1500);
  }

  // Rows of tables by keyboard.
  function rows() { return [...document.querySelectorAll('table[data-rows] tbody tr')]; }
  function choose(step) {
    const all = rows();
    if (!all.length) return;
    const now = all.findIndex(each => each.getAttribute('aria-selected') === 'true');
    const next = all[Math.max(0, Math.min(all.length - 1, now < 0 ? (step > 0 ? 0 : all.length - 1) : now + step))];
    all.forEach(each => each.removeAttribute('aria-selected'));
    next.setAttribute('aria-selected', 'true');
    next.scrollIntoView({block: 'nearest'});
    const link = next.querySelector('a');
    if (link) link.focus({preventScroll: true});
  }
  let began = 0;
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape' && event.target.matches('[data-search]')) event.target.blur();
    if (event.target.closest('input, textarea, select, dialog[open]')) return;
    if (Date.now() - began < 1500) {
      began = 0;
      const link = document.querySelector(`.areas a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === 'g') { began = Date.now(); return; }
    const actions = {
      '/': () => document.querySelector('[data-search]')?.focus(),
      '?': () => document.getElementById('keys')?.showModal(),
      j: () => choose(1),
      k: () => choose(-1),
      p: () => document.querySelector('[data-hold]')?.click(),
    };
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  }

  document.addEventListener('keydown', pressed);
  document.addEventListener('click', event => {
    const target = event.target.closest('button');
    if (!target) return;
    if ('themeButton' in target.dataset) changeTheme();
    if ('copy' in target.dataset) copy(target);
    if (target.dataset.dialog) document.getElementById(target.dataset.dialog)?.showModal();
    if ('menu' in target.dataset) {
      const open = document.getElementById('areas').classList.toggle('open');
      target.setAttribute('aria-expanded', String(open));
    }
  });
  // What is done with rows that are chosen needs one.
  function tellChosen() {
    for (const each of document.querySelectorAll('button[data-chosen]'))
      each.disabled = !each.form.querySelector('td input[type=checkbox]:checked');
  }
  document.addEventListener('change', tellChosen);
  document.addEventListener('submit', event => {
    const sure = event.submitter?.dataset.sure;
    if (sure && !confirm(sure)) event.preventDefault();
  });
  // A select that is a filter of a list sends its form.
  document.addEventListener('change', event => {
    if ('send' in event.target.dataset) event.target.form.requestSubmit();
  });
  document.addEventListener('DOMContentLoaded', () => {
    tellTimes(document);
    tellChosen();
    setInterval(() => tellTimes(document), 5000);
    if ('htmx' in window) document.addEventListener('htmx:after:swap', () => tellTimes(document));
    if (document.querySelector('[data-live]')) follow(document.querySelector('[data-live]'));
  });

  // Live pages: the stream gives a sample a second, and rows that are put on top while nobody reads them.
  function follow(place) {
    const dot = document.querySelector('.live-dot'), state = document.querySelector('[data-live-state]');
    const button = document.querySelector('[data-hold]'), list = document.querySelector('[data-live-rows]');
    const waiting = document.querySelector('[data-live-waiting]');
    const most = Number(list?.dataset.most || 50);
    let held = false, kept = [], missed = 0;
    function tell(text, kind) {
      if (state && state.textContent !== text) state.textContent = text;
      if (dot) dot.className = `live-dot ${kind}`;
    }
    function reading() { return held || list?.matches(':hover, :focus-within'); }
    function put() {
      if (!list || !kept.length) return;
      const holder = document.createElement('template');
      holder.innerHTML = kept.reverse().join('');
      kept = [];
      missed = 0;
      list.prepend(holder.content);
      while (list.rows.length > most) list.deleteRow(-1);
      tellTimes(list);
      if (waiting) waiting.textContent = '';
      document.querySelector('[data-live-empty]')?.remove();
    }
    const source = new EventSource(place.dataset.live);
    source.addEventListener('open', () => tell(held ? 'held' : 'live', held ? 'held' : ''));
    source.addEventListener('error', () => tell('lost, connecting again', 'lost'));
    source.addEventListener('sample', event => {
      const sample = JSON.parse(event.data);
      for (const each of document.querySelectorAll('[data-value]'))
        if (each.dataset.value in sample) each.textContent = sample[each.dataset.value].toLocaleString('en');
      document.dispatchEvent(new CustomEvent('headgate:sample', {detail: sample}));
      if (!reading()) put();
      else if (waiting && missed) waiting.textContent = `${missed} more came meanwhile`;
    });
    source.addEventListener('rows', event => {
      const part = JSON.parse(event.data);
      kept.push(...part.rows);
      missed += part.rows.length + part.more;
      // What nobody will see is not kept.
      if (kept.length > most) kept = kept.slice(-most);
    });
    button?.addEventListener('click', () => {
      held = !held;
      button.textContent = held ? 'Go on' : 'Hold';
      button.setAttribute('aria-pressed', String(held));
      tell(held ? 'held' : 'live', held ? 'held' : '');
      if (!held) put();
    });
    list?.addEventListener('mouseleave', () => { if (!reading()) put(); });
    addEventListener('pagehide', () => source.close());
  }
})();
