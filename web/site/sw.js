"use strict";
// Keeps one build of the site for use offline. The page itself comes from the network whenever
// there is one, so a new build shows at the next visit; only files whose names hold their
// content's hash are answered from here first.
const build = "";
const files = [];
const cacheName = "distopt-" + build;

addEventListener("install", (event) => {
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll(["./", ...files])).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  event.waitUntil(caches.keys().then((names) => Promise.all(
    names.filter((name) => name.startsWith("distopt-") && name !== cacheName).map((name) => caches.delete(name)))));
});

addEventListener("fetch", (event) => {
  const { request } = event;
  const scope = new URL("./", location.href);
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== scope.origin || !url.pathname.startsWith(scope.pathname)) return;
  const path = url.pathname.slice(scope.pathname.length);
  if (files.includes(path)) {
    event.respondWith(caches.open(cacheName).then((cache) => cache.match(scope.href + path)).then((kept) => kept || fetch(request)));
  } else if (path === "" || path === "index.html") {
    event.respondWith(fetch(request).catch(() => caches.open(cacheName).then((cache) => cache.match("./")).then((kept) => kept || Response.error())));
  }
});
