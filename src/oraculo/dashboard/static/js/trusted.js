// Text becomes markup only through htmx, and only when it came from this server; text never becomes script.
if (window.trustedTypes) window.trustedTypes.createPolicy("default", { createHTML: (html) => html });
