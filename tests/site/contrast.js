// What is too faint on a page: words below 4.5 to what lies behind them, shapes below 3.

const PAPERS = ["rgb(255, 255, 255)", "rgb(27, 29, 33)"];
const GRIDS = ["rgb(221, 221, 221)", "rgb(59, 61, 68)"];
const canvas = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas");
const asPixel = canvas.getContext("2d", { willReadFrequently: true });
function rgba(colour) {
  asPixel.clearRect(0, 0, 1, 1);
  asPixel.fillStyle = colour;
  asPixel.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = asPixel.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
const over = (above, below) =>
  [0, 1, 2].map((i) => above[i] * above[3] + below[i] * (1 - above[3])).concat(1);
function luminance(colour) {
  const [r, g, b] = colour.map((v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [less, more] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (more + 0.05) / (less + 0.05);
}
const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
const isShape = (element) => element.ownerSVGElement;

/** The colour behind a point of an element: what lies below it, one above the other. */
function behind(x, y, element) {
  const all = document.elementsFromPoint(x, y);
  const below = all.filter(
    (other) => other !== element && !other.matches("text, tspan, svg") && !(
      element.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING && isShape(element)));
  return below.reverse().reduce((colour, other) => {
    const style = getComputedStyle(other);
    const paint = rgba(isShape(other) ? (style.fill === "none" ? "#0000" : style.fill) : style.backgroundColor);
    return over([...paint.slice(0, 3), paint[3] * (isShape(other) ? style.fillOpacity : 1)], colour);
  }, rgba("#fff"));
}

/** The words of a drawing, or of the page around it, that are too faint: text, contrast. */
function faintWords(limit = 4.5) {
  const found = [], walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let count = 0;
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || element.matches("script, style, title, desc") || !seen(element)) continue;
    range.selectNodeContents(walk.currentNode);
    const box = range.getBoundingClientRect(), style = getComputedStyle(element);
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (!box.width || x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
    let paper;
    if (isShape(element)) paper = behind(x, y, element);
    else {
      const around = [];
      for (let e = element; e; e = e.parentElement) around.unshift(rgba(getComputedStyle(e).backgroundColor));
      paper = around.reduce((below, above) => over(above, below), rgba("#fff"));
    }
    const ink = over(rgba(isShape(element) ? style.fill : style.color), paper);
    const value = contrast(ink, paper);
    count += 1;
    if (value < limit) found.push([walk.currentNode.data.trim().slice(0, 40), value.toFixed(2)]);
  }
  return { count, found };
}

/** The shapes that are too faint: by the better of edge and full filling, beside what is behind. */
function faintShapes(limit = 3) {
  const found = [];
  let count = 0;
  for (const shape of document.querySelectorAll(":is(rect, path, circle, line, use)")) {
    if (shape.closest("defs, clipPath") || !seen(shape) || shape.matches("[href^='#svg']")) continue;
    const style = getComputedStyle(shape), box = shape.getBoundingClientRect();
    let [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (shape.getTotalLength?.()) {
      const far = shape.localName === "path" ? shape.getTotalLength() / 2 : 0;
      const start = shape.getPointAtLength(far).matrixTransform(shape.getScreenCTM());
      [x, y] = [start.x, start.y];
    }
    if (x < 0 || y < 0 || x > innerWidth || y > innerHeight) continue;
    const paints = [];
    if (style.stroke !== "none" && parseFloat(style.strokeWidth) >= 1) paints.push(rgba(style.stroke));
    if (style.fill !== "none" && style.fillOpacity > 0.9) paints.push(rgba(style.fill));
    const paper = behind(x, y, shape);
    const values = paints.filter((p) => p[3] > 0.9).map((p) => contrast(p, paper));
    const isPaper = style.stroke === "none" && PAPERS.includes(style.fill);
    if (!values.length || isPaper || Math.max(...values) === 1 || GRIDS.includes(style.stroke)) continue;
    count += 1;
    if (Math.max(...values) < limit)
      found.push([shape.outerHTML.slice(0, 90), Math.max(...values).toFixed(2)]);
  }
  return { count, found };
}

/** The texts of a drawing that nearly touch the side of the box around them: text, room in pixels. */
function crowded(limit = 2.5) {
  const boxes = [...document.querySelectorAll("rect[stroke]")].map((r) => r.getBoundingClientRect());
  return [...document.querySelectorAll("text")].flatMap((text) => {
    const own = text.getBoundingClientRect();
    const [x, y] = [(own.left + own.right) / 2, (own.top + own.bottom) / 2];
    const around = boxes.filter((b) => b.left < x && x < b.right && b.top < y && y < b.bottom);
    const [box] = around.sort((a, b) => a.width - b.width);
    const room = box ? Math.min(own.left - box.left, box.right - own.right) : limit;
    return room < limit ? [[text.textContent, room.toFixed(1)]] : [];
  });
}

/** What plots' colours are to their paper, where a filter makes them dark. */
function plotColours(colours) {
  const image = document.querySelector('div.output img');
  asPixel.filter = getComputedStyle(image).filter;
  const [paper, ...rest] = ["#ffffff", ...colours].map(rgba);
  asPixel.filter = "none";
  return { paper: luminance(paper), least: Math.min(...rest.map((c) => contrast(c, paper))) };
}
