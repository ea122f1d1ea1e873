// Drawings of graphs: laid out in layers, left to right; nodes are links that the keyboard reaches. Follows an event live.
'use strict';
(() => {
  const SVG = 'http://www.w3.org/2000/svg', LONGEST = 34, HEIGHT = 52;
  const signs = {entered: '▶ entered', passed: '✓ passed', stopped: '✕ stopped', bad: '✕', late: '◷'};
  const classes = {entered: 'source', passed: 'good', stopped: 'bad', source: 'source', good: 'good', bad: 'bad', late: 'late'};
  function make(name, attributes, ...children) {
    const found = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    found.append(...children);
    return found;
  }
  function short(text) { return text.length > LONGEST ? text.slice(0, LONGEST - 1) + '…' : text; }
  function told(node) { return node.title || [node.id, node.note, signs[node.state]?.slice(2)].filter(Boolean).join(', '); }
  function noted(node) { return [short(node.note), signs[node.state]].filter(Boolean).join(' · '); }

  class Drawing {
    constructor(frame) {
      this.frame = frame;
      this.box = frame.querySelector('.drawing');
      this.zoom = 1;
      this.shape = '';
      frame.addEventListener('click', event => {
        const how = event.target.closest('[data-zoom]')?.dataset.zoom;
        if (how === 'in') this.scale(this.zoom * 1.25);
        if (how === 'out') this.scale(this.zoom / 1.25);
        if (how === 'fit') this.fit();
      });
      this.box.addEventListener('keydown', event => this.pressed(event));
    }
    show(data) {
      for (const each of data.nodes) {
        const hung = each.subscriptions;
        each.note ??= [each.kind, hung == null ? '' : hung === 1 ? '1 subscription' : `${hung.toLocaleString('en')} subscriptions`].filter(Boolean).join(' · ');
        each.href ??= data.place + encodeURIComponent(each.id);
      }
      const shape = JSON.stringify([data.nodes.map(each => each.id), data.edges.map(each => [each.source, each.target])]);
      if (shape !== this.shape) this.lay(data);
      this.shape = shape;
      this.mark(data);
    }
    lay(data) {
      const graph = new dagre.graphlib.Graph({multigraph: false});
      graph.setGraph({rankdir: 'LR', nodesep: 18, ranksep: 60, marginx: 12, marginy: 12, ranker: 'tight-tree'});
      graph.setDefaultEdgeLabel(() => ({}));
      for (const each of data.nodes)
        // Wide enough for what may be said of it later: places stay while events pass.
        graph.setNode(each.id, {width: Math.max(short(each.id).length * 7.8, (short(each.note).length + 12) * 6.1, 90) + 20, height: HEIGHT});
      for (const each of data.edges)
        if (graph.hasNode(each.source) && graph.hasNode(each.target)) graph.setEdge(each.source, each.target, {});
      dagre.layout(graph);
      const {width = 100, height = 100} = graph.graph();
      this.size = {width: Math.ceil(width) || 100, height: Math.ceil(height) || 100};
      const tip = make('marker', {id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse'}, make('path', {d: 'M0 0 8 4 0 8z', class: 'tip'}));
      this.svg = make('svg', {viewBox: `0 0 ${this.size.width} ${this.size.height}`, role: 'group', 'aria-label': data.label || 'Nodes of the graph'}, make('defs', {}, tip));
      this.edges = new Map();
      this.nodes = new Map();
      for (const each of data.edges) {
        const points = graph.hasNode(each.source) && graph.hasNode(each.target) && graph.edge(each.source, each.target)?.points;
        if (!points) continue;
        const line = make('path', {d: curve(points), class: 'edge', 'marker-end': 'url(#tip)'});
        if (each.title) line.append(make('title', {}, each.title));
        const middle = points[Math.floor(points.length / 2)];
        const sign = make('text', {x: middle.x, y: middle.y - 3, 'text-anchor': 'middle', class: 'edge-sign'});
        this.svg.append(line, sign);
        this.edges.set(JSON.stringify([each.source, each.target]), {line, sign});
      }
      this.order = [];
      for (const each of data.nodes) {
        const place = graph.node(each.id);
        const name = make('text', {x: place.x, y: place.y - 4, 'text-anchor': 'middle', class: 'name'}, short(each.id));
        const note = make('text', {x: place.x, y: place.y + 14, 'text-anchor': 'middle', class: 'note'});
        const title = make('title', {});
        const link = make('a', {href: each.href, class: 'node', tabindex: -1},
          title, make('rect', {x: place.x - place.width / 2, y: place.y - HEIGHT / 2, width: place.width, height: HEIGHT, rx: 6}), name, note);
        this.svg.append(link);
        const found = {id: each.id, link, note, title, place};
        this.nodes.set(each.id, found);
        this.order.push(found);
      }
      this.order.sort((a, b) => a.place.x - b.place.x || a.place.y - b.place.y);
      this.order[0]?.link.setAttribute('tabindex', 0);
      this.links = data.edges;
      this.box.replaceChildren(this.svg);
      this.fit();
      this.reveal(this.nodes.get(data.chosen) || this.order[0]);
    }
    // Have a node in the middle of the box, without moving the page.
    reveal(found) {
      if (!found) return;
      this.box.scrollLeft = found.place.x * this.zoom - this.box.clientWidth / 2;
      this.box.scrollTop = found.place.y * this.zoom - this.box.clientHeight / 2;
    }
    mark(data) {
      for (const each of data.nodes) {
        const found = this.nodes.get(each.id);
        found.link.setAttribute('class', `node ${classes[each.state] || ''}${each.id === data.chosen ? ' chosen' : ''}`);
        found.link.setAttribute('aria-label', told(each));
        found.link.setAttribute('href', each.href);
        found.title.textContent = told(each);
        found.note.textContent = noted(each);
      }
      for (const each of data.edges) {
        const found = this.edges.get(JSON.stringify([each.source, each.target]));
        if (!found) continue;
        found.line.setAttribute('class', `edge ${classes[each.state] || ''}`);
        if (each.width) found.line.style.strokeWidth = each.width;
        found.sign.textContent = each.state === 'stopped' ? '✕' : each.filter ? 'filter' : '';
        found.sign.setAttribute('class', `edge-sign ${classes[each.state] || ''}`);
      }
    }
    scale(zoom) {
      this.zoom = Math.min(3, Math.max(0.1, zoom));
      this.svg.setAttribute('width', Math.round(this.size.width * this.zoom));
      this.svg.setAttribute('height', Math.round(this.size.height * this.zoom));
    }
    // As wide as the box, and never so small that names cannot be read, nor larger than life.
    fit() { if (this.svg) this.scale(Math.min(1, Math.max(0.55, (this.box.clientWidth - 4) / this.size.width))); }
    pressed(event) {
      const now = this.order?.find(each => each.link === document.activeElement);
      const step = {ArrowRight: 'out', ArrowLeft: 'in', ArrowDown: 'down', ArrowUp: 'up'}[event.key];
      if (!step || !this.order?.length || event.ctrlKey || event.metaKey || event.altKey) return;
      if (!now) return;
      event.preventDefault();
      let next;
      if (step === 'out') next = this.links.find(each => each.source === now.id && each.target !== now.id)?.target;
      if (step === 'in') next = this.links.find(each => each.target === now.id && each.source !== now.id)?.source;
      if (step === 'down' || step === 'up') {
        const place = this.order.indexOf(now) + (step === 'down' ? 1 : -1);
        next = this.order[Math.max(0, Math.min(this.order.length - 1, place))].id;
      }
      const found = this.nodes.get(next);
      if (!found) return;
      now.link.setAttribute('tabindex', -1);
      found.link.setAttribute('tabindex', 0);
      found.link.focus();
      found.link.scrollIntoView({block: 'nearest', inline: 'nearest'});
    }
  }
  function curve(points) {
    const [first, ...rest] = points.map(each => [each.x.toFixed(1), each.y.toFixed(1)]);
    if (rest.length < 2) return `M${first} L${rest.join(' ')}`;
    let path = `M${first}`;
    for (let i = 0; i < rest.length - 1; i++) {
      const [x, y] = rest[i], [nx, ny] = rest[i + 1];
      const end = i === rest.length - 2 ? [nx, ny] : [((+x + +nx) / 2).toFixed(1), ((+y + +ny) / 2).toFixed(1)];
      path += ` Q${x},${y} ${end}`;
    }
    return path;
  }

  const known = new WeakMap();
  function drawAll() {
    return [...document.querySelectorAll('[data-drawing]')].map(frame => {
      if (!known.has(frame)) known.set(frame, new Drawing(frame));
      const drawing = known.get(frame);
      // A part of the page that came anew has none.
      if (!frame.querySelector('svg')) drawing.shape = '';
      drawing.show(JSON.parse(document.getElementById(frame.dataset.drawing).textContent));
      return drawing;
    });
  }
  document.addEventListener('htmx:after:swap', drawAll);
  document.addEventListener('DOMContentLoaded', () => {
    const drawings = drawAll();
    const way = document.querySelector('[data-way][data-follows]');
    if (way) follow(way, drawings[0]);
  });

  // Each second the newest event's way takes the place of the last, but nothing that is being read or used.
  function follow(way, drawing) {
    let asking = false;
    const held = () => document.querySelector('[data-hold]')?.getAttribute('aria-pressed') === 'true';
    function put(name, fresh) {
      const old = document.getElementById(name), next = fresh.querySelector('#' + name);
      if (!old || !next || old.matches(':focus-within, :hover') && name === 'way-details') return;
      old.replaceWith(next);
    }
    document.addEventListener('headgate:sample', async () => {
      if (asking || held()) return;
      asking = true;
      try {
        const known = document.getElementById('way-summary').dataset.known;
        const answer = await fetch(`${way.dataset.way}&known=${encodeURIComponent(known)}`, {headers: {'HX-Request': 'true'}});
        if (answer.status !== 200) return;
        const holder = document.createElement('template');
        holder.innerHTML = await answer.text();
        const data = holder.content.querySelector('#way-data');
        if (!data || held()) return;
        put('way-summary', holder.content);
        put('way-details', holder.content);
        drawing.show(JSON.parse(data.textContent));
        const stay = document.querySelector('[data-stay]');
        if (stay) stay.href = stay.href.replace(/event=.*/, 'event=' + document.getElementById('way-summary').dataset.known);
      } finally { asking = false; }
    });
  }
})();
