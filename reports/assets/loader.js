// SPDX-License-Identifier: Apache-2.0
// Unpacks what the page holds packed, and runs its two scripts.
//
// Everything packed stands in a data block, <script type="..." data-encoding="gzip+base64">, that
// browsers never run. The page's content security policy allows inline scripts by hash alone: that
// of this loader, which stands in the page as it is, and those of the two scripts as they are once
// unpacked. An inline script that a script puts into the page is held against the same hashes, so
// that unpacked text needs neither blob: URLs nor 'unsafe-eval', and nothing but these three texts
// can run.
async function unpacked(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  if (element.dataset.encoding !== 'gzip+base64') return element.textContent;
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(plain).text();
}

(async () => {
  if (typeof DecompressionStream === 'undefined') {
    document.getElementById('too-old').hidden = false;
    return;
  }
  for (const text of ['vega', 'script'].map(unpacked)) {  // both at once, run in this order
    const script = document.createElement('script');
    script.textContent = await text;
    document.head.append(script);
  }
})();
