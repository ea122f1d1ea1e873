"""The page to try the API: operations, a form, the answer, the curl command; nothing from a network.

The key is kept in the page's memory only. All that comes from the service is shown as text.
"""

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; --ground: #f5f7f9; --panel: #fff;
  --sunken: #eef1f4; --ink: #16202b; --soft: #526070; --line: #dce2e8; --strong: #7d8a98; --accent: #0e6a7e; }
@media (prefers-color-scheme: dark) { :root { --ground: #0e141a; --panel: #161e26; --sunken: #1f2933;
  --ink: #e5ebf1; --soft: #a3b1bf; --line: #2c3843; --strong: #71808f; --accent: #63c5d8; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--ground); color: var(--ink); }
a { color: var(--accent); }
h2 { font-size: 1.125rem; margin: 1.5rem 0 .25rem; text-transform: capitalize; }
details { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; margin: .3rem 0;
  padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary code { font-weight: 600; }
label { display: block; margin: .4rem 0; color: var(--soft); }
input, textarea, select, button { box-sizing: border-box; font: inherit; color: var(--ink);
  padding: .3rem .5rem; background: var(--panel); border: 1px solid var(--strong); border-radius: 5px; }
input, textarea, select { width: 100%; }
textarea { font-family: ui-monospace, monospace; min-height: 7rem; }
button { padding: .3rem 1.2rem; margin: .4rem 0; font-weight: 550; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
pre { background: var(--sunken); border-radius: 5px; overflow: auto; padding: .6rem; white-space: pre-wrap; }
"""

SCRIPT = """
'use strict';
const list = document.getElementById('operations');
const key = document.getElementById('key');
function made(name, text, parent) {
  const found = document.createElement(name);
  if (text) found.textContent = text;
  if (parent) parent.append(found);
  return found;
}
function field(parent, label, kind, value) {
  const holder = made('label', label, parent);
  const found = made(kind, '', holder);
  if (value) found.value = value;
  return found;
}
function quoted(text) { return "'" + text.replaceAll("'", "'\\\\''") + "'"; }
function sample(schema, all, depth) {
  if (!schema || depth > 4) return null;
  if (schema.$ref) return sample(all[schema.$ref.split('/').pop()], all, depth + 1);
  if (schema.anyOf) return sample(schema.anyOf.find(each => each.type !== 'null'), all, depth + 1);
  if (schema.enum) return schema.enum[0];
  if (schema.type === 'object') {
    const found = {};
    for (const name of schema.required || []) found[name] = sample(schema.properties[name], all, depth + 1);
    return found;
  }
  if (schema.type === 'array') return [sample(schema.items, all, depth + 1)];
  return {string: '', integer: 1, number: 1, boolean: false}[schema.type] ?? {};
}
function show(method, path, about, all) {
  const box = made('details', '', list);
  const head = made('summary', '', box);
  made('code', method.toUpperCase() + ' ' + path, head);
  made('span', ' ' + about.summary, head);
  if (about.description) made('p', about.description, box);
  const inputs = (about.parameters || []).map(
    each => [each, field(box, each.name + ' (' + each.in + ')', 'input')]);
  let media = null, body = null;
  if (about.requestBody) {
    const content = about.requestBody.content;
    media = field(box, 'content type', 'select');
    for (const name of Object.keys(content)) made('option', name, media).value = name;
    const first = Object.values(content)[0].schema;
    body = field(box, 'body', 'textarea', JSON.stringify(sample(first, all, 0) ?? {}, null, 2));
  }
  const send = made('button', 'Send', box);
  const command = made('pre', '', box), answer = made('pre', '', box);
  command.hidden = answer.hidden = true;
  answer.setAttribute('aria-live', 'polite');
  send.addEventListener('click', async () => {
    let url = path;
    const query = new URLSearchParams(), headers = {};
    for (const [each, input] of inputs) {
      if (!input.value) continue;
      if (each.in === 'path') url = url.replace('{' + each.name + '}', encodeURIComponent(input.value));
      else if (each.in === 'query') query.set(each.name, input.value);
      else headers[each.name] = input.value;
    }
    if (query.size) url += '?' + query;
    if (media) headers['Content-Type'] = media.value;
    const told = Object.entries(headers)
      .map(([name, value]) => ' -H ' + quoted(name + ': ' + value)).join('');
    command.textContent = 'curl -X ' + method.toUpperCase()
      + ' -H "Authorization: Bearer $HEADGATE_KEY"' + told
      + ' ' + quoted(location.origin + url) + (body ? ' -d ' + quoted(body.value) : '');
    if (key.value) headers.Authorization = 'Bearer ' + key.value;
    command.hidden = answer.hidden = false;
    answer.textContent = '…';
    try {
      const asked = {method: method.toUpperCase(), headers, body: body ? body.value : undefined};
      const got = await fetch(url, asked);
      let text = await got.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is no JSON */ }
      answer.textContent = got.status + ' ' + got.statusText + '\\n' + text;
    } catch (error) { answer.textContent = String(error); }
  });
}
fetch('/v1/openapi.json').then(got => got.json()).then(about => {
  let last = '';
  for (const [path, methods] of Object.entries(about.paths))
    for (const [method, each] of Object.entries(methods)) {
      if (each.tags[0] !== last) made('h2', last = each.tags[0], list);
      show(method, path, each, about.components.schemas);
    }
});
"""

PAGE = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headgate API</title><style>{STYLE}</style></head>
<body><h1>Headgate API</h1>
<p>Every operation, to be tried here. The same as a file: <a href="/v1/openapi.json">openapi.json</a>.</p>
<label>API key, kept in this page only
<input id="key" type="password" autocomplete="off" placeholder="hg_…"></label>
<main id="operations"></main>
<script>{SCRIPT}</script></body></html>
"""
