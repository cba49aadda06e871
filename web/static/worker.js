// The worker's side of the program: runs the module that the page has compiled. Go sets its own
// onmessage and says ready; until then the page sends nothing but the first message.
onmessage = async (first) => {
  onmessage = null;
  let tail = "";
  try {
    importScripts(first.data.exec);
    const go = new Go();
    const decoder = new TextDecoder();
    fs.writeSync = (_, bytes) => {
      tail = (tail + decoder.decode(bytes, { stream: true })).slice(-8192);
      return bytes.length;
    };
    go.exit = (code) => postMessage({ stopped: "exit code " + code, report: tail });
    await go.run(await WebAssembly.instantiate(first.data.module, go.importObject));
  } catch (err) {
    postMessage({ stopped: String(err), report: tail });
  }
};
