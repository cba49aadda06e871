import assert from "node:assert/strict";
import { test } from "node:test";
import { indexOf, minimalChange, parentPath, completeKeys } from "./text.js";

test("indexOf counts code points", () => {
  for (const [text, col, want] of [
    ["abc", 1, 0], ["abc", 3, 2], ["abc", 9, 3], ["", 1, 0], ["é: 1", 2, 1], ["😀: 1", 2, 2], ["a😀b", 3, 3],
  ]) assert.equal(indexOf(text, col), want, `${text} at ${col}`);
});

test("minimalChange keeps what both texts share", () => {
  for (const [old, text, from, to, insert] of [
    ["a: 1\nb: 2\n", "a: 1\nb: 3\n", 8, 9, "3"],
    ["aa", "aaa", 2, 2, "a"],
    ["aaa", "aa", 2, 3, ""],
    ["", "x", 0, 0, "x"],
    ["x", "", 0, 1, ""],
  ]) {
    const change = minimalChange(old, text);
    assert.deepEqual(change, { from, to, insert });
    assert.equal(old.slice(0, from) + insert + old.slice(to), text);
  }
});

const lines = ["model:", "  # a remark", "  optim:", "    name: x", "    b", "trainer:", "  d"];
const at = (n) => lines[n - 1];

test("parentPath follows the indentation", () => {
  assert.equal(parentPath(at, 5), "model.optim");
  assert.equal(parentPath(at, 3), "model");
  assert.equal(parentPath(at, 7), "trainer");
  assert.equal(parentPath(at, 1), "");
});

test("completeKeys offers the keys of the mapping at the cursor", () => {
  const text = lines.join("\n");
  const offset = lines.slice(0, 5).join("\n").length;
  const doc = {
    line: (n) => ({ text: lines[n - 1] }),
    lineAt: () => ({ number: 5, text: lines[4], from: offset - lines[4].length }),
  };
  const keys = [{ path: "model.optim.bucket_cap_mb", detail: "MiB" }, { path: "model.optim.sched.name" }, { path: "model.tensor" }];
  const found = completeKeys({ state: { doc }, pos: offset, explicit: false }, keys);
  assert.deepEqual(found.options.map((o) => o.apply), ["bucket_cap_mb: ", "sched:"]);
  assert.equal(found.from, text.indexOf("\n    b") + 5);
  assert.equal(completeKeys({ state: { doc: { ...doc, lineAt: () => ({ number: 4, text: lines[3], from: 0 }) } }, pos: lines[3].length, explicit: true }, keys), null);
});
