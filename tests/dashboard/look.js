// What is wrong with the page as it is laid out now; each finding is a line. Scrolled and hidden parts do not count.
async () => {
  await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
  const found = [], SLACK = 2;
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1) found.push(`scrolls sideways: ${document.documentElement.scrollWidth} in ${width}`);
  const name = (element) => `<${element.tagName.toLowerCase()} ${element.className?.baseVal ?? element.className ?? ""}>`;
  const short = (text) => JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 50));
  const layer = (element) => { // what floats over the page is compared with itself only
    for (let one = element; one && one !== document.body; one = one.parentElement)
      if (["fixed", "sticky"].includes(getComputedStyle(one).position) || one.tagName === "DIALOG" || one.classList.contains("minimap")) return one;
    return null;
  };
  const seen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, style, noscript, option, .hidden, .skip") || !seen(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const clips = []; // ancestors that cut or scroll what is in them
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (style.overflowX !== "visible" || style.overflowY !== "visible") clips.push([one.getBoundingClientRect(), style]);
      if (style.position === "fixed") break;
    }
    const lines = [...range.getClientRects()];
    if (lines.length > 3 && Math.max(...lines.map((one) => one.width)) < 28) found.push(`squeezed: ${short(node.data)} in ${name(element)}`);
    for (const rect of lines) {
      let { left, right, top, bottom } = rect;
      let scrolls = false;
      for (const [clip, style] of clips) {
        if (right > clip.right + SLACK && style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && !scrolls && left < clip.right)
          found.push(`cut without a sign: ${short(node.data)} in ${name(element)}`);
        scrolls ||= style.overflowX === "auto" || style.overflowX === "scroll" || style.textOverflow === "ellipsis";
        left = Math.max(left, clip.left); right = Math.min(right, clip.right);
        top = Math.max(top, clip.top); bottom = Math.min(bottom, clip.bottom);
      }
      if (right - left < 1 || bottom - top < 1) continue;
      if (!scrolls && (right > width + SLACK || left < -SLACK)) found.push(`outside of the page: ${short(node.data)} in ${name(element)}`);
      boxes.push({ left, right, top, bottom, node, layer: layer(element) });
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  for (let i = 0; i < boxes.length; i++)
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - SLACK; j++) {
      const one = boxes[i], other = boxes[j];
      if (one.node === other.node || one.layer !== other.layer) continue;
      const high = Math.min(one.bottom, other.bottom) - other.top;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      // Lines of text may touch: boxes of letters are higher than the letters.
      if (wide > SLACK && high > 0.35 * Math.min(one.bottom - one.top, other.bottom - other.top))
        found.push(`on top of each other: ${short(one.node.data)} and ${short(other.node.data)}`);
    }
  // Fields and buttons are boxes of their own: two of them never share a place.
  const controls = [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a.button")]
    .filter((one) => seen(one) && !one.closest(".hidden, .skip, dialog"))
    .map((one) => ({ one, layer: layer(one), box: one.getBoundingClientRect() }));
  for (const first of controls)
    for (const second of controls) {
      if (first === second || first.layer !== second.layer || first.one.contains(second.one) || second.one.contains(first.one)) continue;
      const high = Math.min(first.box.bottom, second.box.bottom) - Math.max(first.box.top, second.box.top);
      const wide = second.box.left >= first.box.left ? Math.min(first.box.right, second.box.right) - second.box.left : 0;
      if (high > SLACK && wide > SLACK) found.push(`controls share a place: ${name(first.one)} and ${name(second.one)}`);
    }
  return [...new Set(found)];
}
