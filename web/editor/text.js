// Text work of the editor that needs no browser.

// indexOf turns a 1-based column in code points into a 0-based index into a line.
export function indexOf(text, col) {
  let i = 0;
  for (let n = 1; n < col && i < text.length; n++) i += text.codePointAt(i) > 0xffff ? 2 : 1;
  return i;
}

// minimalChange is the one replacement that turns old into text: what both share at their ends
// stays, and with it the cursor and the marks there.
export function minimalChange(old, text) {
  const most = Math.min(old.length, text.length);
  let from = 0;
  while (from < most && old.charCodeAt(from) === text.charCodeAt(from)) from++;
  let tail = 0;
  while (tail < most - from && old.charCodeAt(old.length - 1 - tail) === text.charCodeAt(text.length - 1 - tail)) tail++;
  return { from, to: old.length - tail, insert: text.slice(from, text.length - tail) };
}

// parentPath returns the dotted path of the mapping that holds line number n, from indentation.
export function parentPath(lineAt, n) {
  let depth = lineAt(n).search(/\S|$/);
  const path = [];
  for (let i = n - 1; i >= 1 && depth > 0; i--) {
    const found = /^(\s*)([\w.-]+):/.exec(lineAt(i));
    if (found && found[1].length < depth) {
      depth = found[1].length;
      path.unshift(found[2]);
    }
  }
  return path.join(".");
}

// completeKeys offers the keys that may stand in the mapping at the cursor.
export function completeKeys(at, keys) {
  const line = at.state.doc.lineAt(at.pos);
  const typed = /^(\s*)([\w.-]*)$/.exec(line.text.slice(0, at.pos - line.from));
  if (!typed || (typed[2] === "" && !at.explicit)) return null;
  const parent = parentPath((n) => n === line.number ? typed[1] + "x" : at.state.doc.line(n).text, line.number);
  const prefix = parent && parent + ".";
  const seen = new Map();
  for (const key of keys) {
    if (!key.path.startsWith(prefix)) continue;
    const [name, ...deeper] = key.path.slice(prefix.length).split(".");
    if (seen.has(name)) continue;
    seen.set(name, deeper.length ? { label: name, apply: name + ":" } : { label: name, apply: name + ": ", detail: key.detail, info: key.info });
  }
  return { from: at.pos - typed[2].length, options: [...seen.values()], validFor: /^[\w.-]*$/ };
}
