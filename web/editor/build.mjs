// Bundles yaml-editor.js into ../static/editor.js and writes LICENSES.txt, the licences of what went
// into it. With --check it writes nothing and fails when either file would change.
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const result = await build({
  absWorkingDir: here,
  entryPoints: ["yaml-editor.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  legalComments: "none", // the licences stand in full in THIRD_PARTY_NOTICES
  metafile: true,
  write: false,
});

// Package folders of all inputs: node_modules/name or node_modules/@scope/name.
const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) packages.add(found[1]);
}
const licences = [...packages].sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
  const file = readdirSync(join(here, folder)).find((f) => /^licen[cs]e/i.test(f));
  if (!file) throw new Error(`${name} ${version} has no licence file`);
  return `=== ${name} ${version}\n\n${readFileSync(join(here, folder, file), "utf8").trim()}\n`;
}).join("\n");

const outputs = [
  [join(here, "../static/editor.js"), result.outputFiles[0].text],
  [join(here, "LICENSES.txt"), licences],
];
for (const [path, text] of outputs) {
  if (!process.argv.includes("--check")) {
    writeFileSync(path, text);
  } else if (readFileSync(path, "utf8") !== text) {
    console.error(`${path} differs from a rebuild; run: make editor`);
    process.exitCode = 1;
  }
}
