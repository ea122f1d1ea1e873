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
function quoted(text) { return "'" + text.replaceAll("'", "'\\''") + "'"; }
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
      answer.textContent = got.status + ' ' + got.statusText + '\n' + text;
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
