// Draws the display lists that web/canvas builds, and applies the lengths that views put into
// data-css (an attribute "style" is refused by the Content-Security-Policy; the CSSOM is not).
"use strict";
(() => {
  let colours = [], hatches = new Map(), fonts = [];
  const rasters = []; // {image, strip, context, fresh}
  const probe = () => document.getElementById("probe") || document.body.appendChild(Object.assign(document.createElement("span"), { id: "probe", hidden: true }));

  // palette resolves tokens to what the theme makes of them, and returns them as RGBA bytes.
  function palette(names) {
    const el = probe(), cell = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    hatches.clear();
    el.style.setProperty("forced-color-adjust", "none"); // else forced colours make them all alike
    const out = new Uint8Array(names.length * 4);
    colours = names.map((name, i) => {
      el.style.color = `var(--${name})`;
      const c = getComputedStyle(el).color;
      cell.clearRect(0, 0, 1, 1); cell.fillStyle = c; cell.fillRect(0, 0, 1, 1);
      out.set(cell.getImageData(0, 0, 1, 1).data, i * 4);
      return c;
    });
    const family = getComputedStyle(document.body).fontFamily;
    fonts = [`400 11px ${family}`, `500 11px ${family}`, `600 12px ${family}`];
    return out;
  }

  function hatch(colour, ground, gap) {
    const key = colour + "," + ground + "," + gap, d = devicePixelRatio || 1;
    if (hatches.has(key)) return hatches.get(key);
    const size = Math.round(gap * d), o = new OffscreenCanvas(size, size), c = o.getContext("2d");
    if (ground >= 0) { c.fillStyle = colours[ground]; c.fillRect(0, 0, size, size); }
    c.strokeStyle = colours[colour]; c.lineWidth = d;
    for (const q of [-1, 0, 1]) { c.beginPath(); c.moveTo(q * size - d, size + d); c.lineTo(q * size + size + d, -d); c.stroke(); }
    const pattern = c.createPattern(o, "repeat");
    pattern.setTransform(new DOMMatrix().scale(1 / d));
    hatches.set(key, pattern);
    return pattern;
  }

  // rows makes room for a raster: one row of pixels for each row of its picture.
  function rows(raster, w, h) {
    let r = rasters[raster];
    if (!r || r.image.width !== w || r.image.height < h) {
      const strip = new OffscreenCanvas(w, h);
      r = rasters[raster] = { image: new ImageData(w, h), strip, context: strip.getContext("2d") };
    }
    r.fresh = h;
    return r.image.data;
  }

  // frame draws a display list on a canvas. bytes holds n float32 numbers.
  const frame = (canvas, raster, bytes, n, text) => draw(canvas, canvas, rasters[raster], bytes, n, text);

  // layer draws one of the size of a canvas and keeps it with a raster.
  const layer = (canvas, raster, bytes, n, text) =>
    draw(rasters[raster].layer ??= new OffscreenCanvas(1, 1), canvas, rasters[raster], bytes, n, text);

  function draw(onto, canvas, r, bytes, n, text) {
    const d = devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight, w = Math.round(wide * d), h = Math.round(high * d);
    if (onto.width !== w) onto.width = w;
    if (onto.height !== h) onto.height = h;
    const c = onto.getContext("2d"), o = new Float32Array(bytes.buffer, bytes.byteOffset, n);
    const strings = text === "" ? [] : text.split("\x1f"), strip = r && r.strip;
    if (r && r.fresh) { r.context.putImageData(r.image, 0, 0, 0, 0, w, r.fresh); r.fresh = 0; }
    c.setTransform(d, 0, 0, d, 0, 0);
    c.clearRect(0, 0, wide, high);
    c.textBaseline = "middle"; c.imageSmoothingEnabled = false; c.globalAlpha = 1;
    let depth = 0;
    for (let i = 0; i < o.length;) switch (o[i]) {
      case 1: c.fillStyle = colours[o[i + 5]]; c.fillRect(o[i + 1], o[i + 2], o[i + 3], o[i + 4]); i += 6; break;
      case 2: c.fillStyle = hatch(o[i + 5], o[i + 6], o[i + 7]); c.fillRect(o[i + 1], o[i + 2], o[i + 3], o[i + 4]); i += 8; break;
      case 3: c.strokeStyle = colours[o[i + 5]]; c.lineWidth = o[i + 6]; c.strokeRect(o[i + 1], o[i + 2], o[i + 3], o[i + 4]); i += 7; break;
      case 4: c.fillStyle = colours[o[i + 4]]; c.font = fonts[o[i + 5]]; c.textAlign = ["left", "center", "right"][o[i + 6]]; c.fillText(strings[o[i + 3]], o[i + 1], o[i + 2]); i += 7; break;
      case 5: {
        const n = o[i + 1]; c.beginPath();
        for (let k = 0; k < n; k++) c.lineTo(o[i + 4 + 2 * k], o[i + 5 + 2 * k]);
        if (o[i + 3] > 0) { c.strokeStyle = colours[o[i + 2]]; c.lineWidth = o[i + 3]; c.stroke(); } else { c.fillStyle = colours[o[i + 2]]; c.fill(); }
        i += 4 + 2 * n; break;
      }
      case 6: c.save(); depth++; c.beginPath(); c.rect(o[i + 1], o[i + 2], o[i + 3], o[i + 4]); c.clip(); i += 5; break;
      case 7: c.restore(); depth--; i += 1; break;
      case 8: c.fillStyle = colours[o[i + 4]]; c.beginPath(); c.arc(o[i + 1], o[i + 2], o[i + 3], 0, 7); c.fill(); i += 5; break;
      case 9: c.drawImage(strip, 0, o[i + 1], strip.width, 1, o[i + 2], o[i + 3], o[i + 4], o[i + 5]); i += 6; break;
      case 10: c.globalAlpha = o[i + 1]; i += 2; break;
      case 11: c.drawImage(r.layer, 0, 0, wide, high); i += 1; break;
      default: throw new Error("display list: operation " + o[i] + " at " + i);
    }
    while (depth-- > 0) c.restore();
  }

  let ruler;
  // widths measures strings in one of the fonts.
  function widths(text, font) {
    ruler ??= new OffscreenCanvas(1, 1).getContext("2d");
    ruler.font = fonts[font];
    return text.split("\x1f").map((s) => ruler.measureText(s).width);
  }

  // data-css="left:12px;width:40%" is applied property by property.
  function apply(el) {
    for (const pair of (el.getAttribute("data-css") || "").split(";")) {
      const k = pair.indexOf(":");
      if (k > 0) el.style.setProperty(pair.slice(0, k), pair.slice(k + 1));
    }
  }
  function scan(node) {
    if (node.nodeType !== 1) return;
    if (node.hasAttribute("data-css")) apply(node);
    for (const el of node.querySelectorAll("[data-css]")) apply(el);
  }
  new MutationObserver((records) => {
    for (const r of records) {
      if (r.type === "attributes") apply(r.target);
      else for (const n of r.addedNodes) scan(n);
    }
  }).observe(document.documentElement, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-css"] });

  globalThis.distoptPaint = { palette, rows, frame, layer, widths, buffer: (n) => new Uint8Array(n) };
})();
