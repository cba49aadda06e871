"use strict";
// Loads and starts the program, and says why when it cannot. What it offers to Go stands in
// `distopt` at the end; the storage keys and the ids are those of web/ids.

(() => {
  const boot = document.getElementById("boot").dataset;
  const byId = (id) => document.getElementById(id);
  const absolute = (path) => new URL(path, document.baseURI).href;

  // go-app asks for these; with the page's own folder as prefix it works under any path.
  const prefix = new URL(".", document.baseURI).pathname.replace(/\/$/, "");
  const env = { GOAPP_ROOT_PREFIX: prefix, GOAPP_STATIC_RESOURCES_URL: prefix, GOAPP_INTERNAL_URLS: "[]" };
  globalThis.goappGetenv = (name) => env[name] || "";

  // go-app parses the address with net/url, which refuses a malformed escape and ends the program.
  if (/%(?![0-9a-fA-F]{2})/.test(location.hash)) {
    history.replaceState(null, "", location.pathname + location.search);
  }

  // Where the visitor forbids storage, asking for it throws, which would end the program: it gets one
  // that forgets.
  for (const name of ["localStorage", "sessionStorage"]) {
    try { globalThis[name].length; } catch {
      const kept = new Map();
      const storage = Object.create({
        get length() { return kept.size; },
        getItem: (key) => kept.get(key) ?? null,
        setItem: (key, value) => { kept.set(key, String(value)); },
        removeItem: (key) => { kept.delete(key); },
        key: (n) => [...kept.keys()][n] ?? null,
        clear: () => kept.clear(),
      });
      Object.defineProperty(globalThis, name, { value: storage, configurable: true });
    }
  }

  // --- the message shown when nothing else can be ---

  const stored = (key) => { try { return sessionStorage.getItem(key) || ""; } catch { return ""; } };

  let stopped = false;
  function stop(title, reason, report) {
    if (stopped) return;
    stopped = true;
    document.documentElement.dataset.stopped = "1";
    const text = stored("distopt.a");
    const other = stored("distopt.b");
    const saved = other && other !== text ? text + "\n---\n" + other : text;
    byId("stopped-title").textContent = title;
    byId("stopped-reason").textContent = reason;
    byId("stopped-text").value = saved;
    byId("stopped-saved").hidden = byId("stopped-copy").hidden = !saved;
    byId("stopped-report").textContent = [title, reason, report, location.href, navigator.userAgent].filter(Boolean).join("\n");
    byId("stopped-reload").onclick = () => {
      try { sessionStorage.setItem("distopt.restore", "1"); } catch { /* the hash is kept all the same */ }
      location.reload();
    };
    byId("stopped-fresh").onclick = () => {
      history.replaceState(null, "", location.pathname + location.search);
      location.reload();
    };
    byId("stopped-copy").onclick = () => copy(byId("stopped-text").value);
    byId("stopped-copy-report").onclick = () => copy(byId("stopped-report").textContent);
    byId("stopped").hidden = false;
    byId("stopped-reload").focus();
  }

  function copy(text) {
    if (navigator.clipboard) {
      navigator.clipboard.writeText(text).catch(() => select(byId("stopped-text")));
    } else {
      select(byId("stopped-text"));
    }
  }

  function select(area) {
    area.focus();
    area.select();
  }

  // --- loading, with progress in raw bytes: Content-Length is the compressed size ---

  const total = Number(boot.bytes) || 0;
  const mega = (n) => (n / 1e6).toFixed(1);
  const began = performance.now();
  let received = 0;

  function showProgress() {
    const label = byId("loader-text");
    if (!label) return; // the page is up
    if (total) byId("loader-bar").value = Math.min(1, received / total);
    else byId("loader-bar").removeAttribute("value");
    label.textContent = total ? `Loading, ${mega(received)} of ${mega(total)} MB` : `Loading, ${mega(received)} MB`;
  }

  const patience = setInterval(() => {
    const line = byId("loader-reason");
    if (!line || stopped) return clearInterval(patience);
    const seconds = (performance.now() - began) / 1000;
    if (seconds < 10) return;
    if (received === 0) line.textContent = "The server has not answered yet.";
    else if (total && received >= total) line.textContent = "Everything is here; the browser is still compiling it.";
    else {
      const rest = total ? `, about ${Math.ceil((total - received) / received * seconds)} s to go` : "";
      line.textContent = `The connection is slow: ${Math.round(received / seconds / 1000)} kB a second${rest}.`;
    }
  }, 500);

  function counted(body) {
    return body.pipeThrough(new TransformStream({
      transform(part, out) {
        received += part.byteLength;
        showProgress();
        out.enqueue(part);
      },
    }));
  }

  async function fetched(path, signal) {
    const response = await fetch(path, { signal });
    if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
    return response;
  }

  const asModule = (body) => WebAssembly.compileStreaming(
    new Response(body, { headers: { "Content-Type": "application/wasm" } }));

  // compile takes the plain file where the server compresses it on the way, else the .gz beside
  // it; a browser that lacks a piece of this takes the plain file whole.
  async function compile() {
    try {
      const give = new AbortController();
      const plain = await fetched(boot.wasm, give.signal);
      if (!boot.gz || plain.headers.get("Content-Encoding") || !globalThis.DecompressionStream) {
        return await asModule(counted(plain.body));
      }
      give.abort();
      const gz = await fetched(boot.gz);
      const body = gz.headers.get("Content-Encoding") ? gz.body : gz.body.pipeThrough(new DecompressionStream("gzip"));
      return await asModule(counted(body));
    } catch (err) {
      received = 0;
      const plain = await fetched(boot.wasm);
      const bytes = await plain.arrayBuffer();
      received = bytes.byteLength;
      showProgress();
      return await WebAssembly.compile(bytes);
    }
  }

  // --- running ---

  let module;
  let tail = ""; // the last that Go has printed: a panic's message and stack

  async function run() {
    if (typeof WebAssembly !== "object") {
      return stop("This browser cannot run the page", "WebAssembly is missing or switched off. A current Firefox, Chromium or Safari has it.", "");
    }
    if (typeof Go !== "function") {
      return stop("The page could not be loaded", "wasm_exec.js did not arrive from the server.", "");
    }
    showProgress();
    try {
      module = await compile();
    } catch (err) {
      const offline = navigator.onLine === false ? " The browser is offline." : "";
      return stop("The page could not be loaded", `The program did not arrive: ${err.message}.${offline}`, String(err.stack || err));
    }
    try {
      const go = new Go();
      const decoder = new TextDecoder();
      const print = fs.writeSync;
      fs.writeSync = (fd, bytes) => {
        tail = (tail + decoder.decode(bytes, { stream: true })).slice(-8192);
        return print.call(fs, fd, bytes);
      };
      // Events and timers that are still bound would only log that it has exited.
      const end = (reason, report) => {
        go._resume = () => {};
        go._scheduledTimeouts.clear();
        stop("The page has stopped", reason, report);
      };
      go.exit = (code) => end(`The program ended with exit code ${code}.`, tail);
      // What a call from an event or a timer throws, as a stack that is full, has left the program
      // in the middle of its work: it cannot go on.
      const resume = go._resume;
      go._resume = () => {
        try {
          resume.call(go);
        } catch (err) {
          end(String(err), tail || String(err.stack || ""));
        }
      };
      await go.run(await WebAssembly.instantiate(module, go.importObject));
    } catch (err) {
      stop("The page has stopped", String(err), tail || String(err.stack || ""));
    }
  }

  globalThis.distopt = {
    // spawn starts a worker on the module that runs here; every message goes to receive as it came.
    spawn(receive) {
      const worker = new Worker(absolute(boot.worker));
      worker.onmessage = (event) => receive(event.data);
      worker.onerror = (event) => {
        event.preventDefault();
        receive({ stopped: event.message || "the worker could not be started", report: "" });
      };
      worker.postMessage({ module, exec: absolute(boot.exec) });
      return worker;
    },
    // stop shows the last message; for Go code that cannot go on.
    stop,
  };

  run();

  // Offline use, only for a built site (data-sw is empty in a work tree): see sw.js.
  if (boot.sw && "serviceWorker" in navigator) {
    addEventListener("load", () => navigator.serviceWorker.register(absolute(boot.sw)).catch(() => {}));
  }
})();
