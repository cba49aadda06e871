// <yaml-editor>: a text editor for YAML as a custom element, on CodeMirror 6. It lives in a shadow
// root, so that its styles are adopted style sheets, which a strict Content-Security-Policy allows.
//
//   value        string; get and set. Setting it fires no event and keeps undo history.
//   diagnostics  set: JSON text or array of {line, col, end_col?, severity, message}, as the
//                importer's Diagnostic; lines and columns count from 1, columns in code points.
//   completions  set: JSON text or array of {path, detail?, info?}; path is a dotted key path.
//   label        set: the accessible name.
//   readonly     set: boolean.
//   reveal(line) puts the cursor on a line and scrolls it into view.
//
// Events: doc-change (the visitor changed the text; detail is the text), doc-submit (Ctrl+Enter),
// doc-cursor (detail is the line), doc-undo and doc-redo (cancelable: a page with a history of its
// own prevents the default).
import { EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, drawSelection, placeholder } from "@codemirror/view";
import { EditorState, Compartment, Annotation } from "@codemirror/state";
import { defaultKeymap, history, indentWithTab, undo, redo } from "@codemirror/commands";
import { StreamLanguage, syntaxHighlighting, HighlightStyle, indentUnit, foldGutter, foldService, foldKeymap } from "@codemirror/language";
import { setDiagnostics, lintGutter, lintKeymap } from "@codemirror/lint";
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { search, searchKeymap, highlightSelectionMatches } from "@codemirror/search";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";
import { tags } from "@lezer/highlight";
import { completeKeys, indexOf, minimalChange } from "./text.js";

const fromOutside = Annotation.define();

// Colours are the page's tokens, with values that hold without them.
const colour = {
  text: "var(--text, #1a1f26)",
  dim: "var(--text-3, #626d7b)",
  line: "var(--line, #e1e4e9)",
  ground: "var(--surface, #ffffff)",
  well: "var(--surface-2, #f7f8fa)",
  accent: "var(--accent, #1d5fc4)",
  wash: "var(--accent-wash, #e6effc)",
  error: "var(--error, #b3152b)",
  warn: "var(--warn, #855800)",
};

const look = EditorView.theme({
  "&": { height: "100%", color: colour.text, backgroundColor: colour.ground, fontSize: "var(--fs-12, 12px)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono, monospace)", lineHeight: "1.5" },
  ".cm-content": { caretColor: colour.text },
  ".cm-cursor": { borderLeftColor: colour.text },
  ".cm-gutters": { backgroundColor: colour.well, color: colour.dim, borderRight: `1px solid ${colour.line}` },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent, #1d5fc4) 7%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: colour.wash },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--overlay, #ffffff)", color: colour.text, border: `1px solid ${colour.line}` },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: colour.wash, color: colour.text },
  ".cm-diagnostic": { maxWidth: "48ch" },
  ".cm-diagnostic-error": { borderLeftColor: colour.error },
  ".cm-diagnostic-warning": { borderLeftColor: colour.warn },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: `underline wavy ${colour.error}`, textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: `underline wavy ${colour.warn}`, textUnderlineOffset: "3px" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-wash, #fbf1dc)" },
  ".cm-foldPlaceholder": { backgroundColor: colour.well, borderColor: colour.line, color: colour.dim },
});

const highlight = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName), tags.atom], color: colour.accent },
  { tag: tags.comment, color: colour.dim, fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good, #1b7340)" },
  { tag: [tags.number, tags.bool, tags.keyword], color: "var(--warn, #855800)" },
  { tag: tags.meta, color: colour.dim },
]);

// A line folds when the lines after it are indented deeper.
const foldByIndent = foldService.of((state, lineStart) => {
  const indent = (text) => text.trim() === "" || text.trim()[0] === "#" ? Infinity : text.search(/\S/);
  const line = state.doc.lineAt(lineStart);
  const own = indent(line.text);
  if (own === Infinity) return null;
  let end = line.number;
  for (let n = line.number + 1; n <= state.doc.lines; n++) {
    const depth = indent(state.doc.line(n).text);
    if (depth <= own) break;
    if (depth !== Infinity) end = n;
  }
  return end === line.number ? null : { from: line.to, to: state.doc.line(end).to };
});

const listOf = (v) => typeof v === "string" ? JSON.parse(v || "[]") : v || [];

class YamlEditor extends HTMLElement {
  #view;
  #text = "";
  #label = "Configuration as YAML";
  #readonly = false;
  #keys = [];
  #diagnostics = [];
  // What the view has not been told yet: new text takes it some milliseconds, so it waits while nobody sees it.
  #late = null;
  #unmarked = false;
  #seen = new IntersectionObserver((entries) => { this.#inView = entries.at(-1).isIntersecting; if (this.#inView) this.#catchUp(); });
  #inView = false;
  #attributes = new Compartment();
  #editable = new Compartment();

  connectedCallback() {
    if (this.#view) return;
    const root = this.shadowRoot || this.attachShadow({ mode: "open", delegatesFocus: true });
    this.#view = new EditorView({ root, parent: root, state: this.#fresh(this.#text) });
    this.#mark();
    this.#seen.observe(this);
  }

  disconnectedCallback() {
    this.#seen.disconnect();
    this.#text = this.value;
    this.#inView = false;
    this.#late = null;
    this.#view.destroy();
    this.#view = null;
  }

  #fresh(doc) {
    return EditorState.create({ doc, extensions: [
      lineNumbers(), foldGutter(), lintGutter(), foldByIndent,
      highlightActiveLine(), highlightActiveLineGutter(), highlightSpecialChars(), drawSelection(),
      history(), search({ top: true }), highlightSelectionMatches(),
      StreamLanguage.define(yaml), syntaxHighlighting(highlight), indentUnit.of("  "), EditorState.tabSize.of(2),
      autocompletion({ override: [(at) => completeKeys(at, this.#keys)], icons: false }),
      keymap.of([
        { key: "Mod-Enter", run: () => { this.#tell("doc-submit", this.value); return true; } },
        { key: "Mod-z", run: (view) => this.#back("doc-undo", undo, view), shift: (view) => this.#back("doc-redo", redo, view), preventDefault: true },
        { key: "Mod-y", run: (view) => this.#back("doc-redo", redo, view), preventDefault: true },
        ...completionKeymap, ...searchKeymap, ...foldKeymap, ...lintKeymap, ...defaultKeymap,
      ]),
      // Tab leaves the editor unless text is selected: a keyboard user must get out (WCAG 2.1.2).
      keymap.of([{ key: "Tab", run: (view) => !view.state.selection.main.empty && indentWithTab.run(view), shift: (view) => !view.state.selection.main.empty && indentWithTab.shift(view) }]),
      placeholder("Paste a NeMo configuration"),
      this.#attributes.of(this.#contentAttributes()),
      this.#editable.of(EditorState.readOnly.of(this.#readonly)),
      look,
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !update.transactions.some((t) => t.annotation(fromOutside))) this.#tell("doc-change", this.value);
        if (update.selectionSet && !update.docChanged) this.#tell("doc-cursor", update.state.doc.lineAt(update.state.selection.main.head).number);
      }),
    ] });
  }

  #contentAttributes() {
    return EditorView.contentAttributes.of({ "aria-label": this.#label, spellcheck: "false", autocapitalize: "off", autocorrect: "off" });
  }

  #tell(name, detail) {
    return this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, cancelable: true }));
  }

  // #back leaves a step in history to the page when it has one; the key is done with either way.
  #back(name, own, view) {
    if (this.#tell(name)) own(view);
    return true;
  }

  get value() { return this.#late ?? (this.#view ? this.#view.state.doc.toString() : this.#text); }
  set value(text) {
    text = String(text);
    if (text === this.value) return;
    this.#text = text;
    if (!this.#view) return;
    this.#late = text;
    if (this.#inView) this.#catchUp();
  }

  get diagnostics() { return this.#diagnostics; }
  set diagnostics(list) {
    this.#diagnostics = listOf(list);
    this.#unmarked = true;
    if (this.#inView) this.#catchUp();
  }

  #catchUp() {
    if (!this.#view) return;
    const text = this.#late;
    this.#late = null;
    if (text !== null) this.#view.dispatch({ changes: minimalChange(this.value, text), annotations: fromOutside.of(true) });
    if (this.#unmarked) this.#mark();
  }

  #mark() {
    if (!this.#view) return;
    this.#unmarked = false;
    const { state } = this.#view;
    const at = (line, col) => {
      const l = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
      return l.from + (col ? indexOf(l.text, col) : l.text.length - l.text.trimStart().length);
    };
    const found = this.#diagnostics.map((d) => {
      const line = d.line || 1;
      const from = at(line, d.col);
      let to = d.end_col ? at(line, d.end_col) : from;
      if (to <= from) { // to the end of the word, or of the line's text
        const l = state.doc.lineAt(from);
        const word = /^[^\s:#,\]}]+/.exec(l.text.slice(from - l.from));
        to = word ? from + word[0].length : Math.max(from, l.to);
      }
      return { from, to, severity: d.severity === "error" ? "error" : d.severity === "info" ? "info" : "warning", message: d.message };
    });
    found.sort((a, b) => a.from - b.from);
    this.#view.dispatch(setDiagnostics(state, found));
  }

  set completions(list) { this.#keys = listOf(list); }

  get label() { return this.#label; }
  set label(text) {
    this.#label = text;
    if (this.#view) this.#view.dispatch({ effects: this.#attributes.reconfigure(this.#contentAttributes()) });
  }

  get readonly() { return this.#readonly; }
  set readonly(on) {
    this.#readonly = Boolean(on);
    if (this.#view) this.#view.dispatch({ effects: this.#editable.reconfigure(EditorState.readOnly.of(this.#readonly)) });
  }

  reveal(line) {
    if (!this.#view) return;
    this.#catchUp();
    const l = this.#view.state.doc.line(Math.min(Math.max(line, 1), this.#view.state.doc.lines));
    this.#view.dispatch({ selection: { anchor: l.from + l.text.length - l.text.trimStart().length }, effects: EditorView.scrollIntoView(l.from, { y: "center" }) });
    this.#view.focus();
  }

  focus() { if (this.#view) { this.#catchUp(); this.#view.focus(); } }
}

customElements.define("yaml-editor", YamlEditor);
