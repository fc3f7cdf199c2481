// Runs before the first paint, so that a dark page never flashes light. Kept apart from the bundle because the
// content security policy allows no inline script.
(function () {
  var theme = 'auto';
  try {
    theme = localStorage.getItem('tidemark.theme') || 'auto';
  } catch (e) {
    // Storage may be forbidden; the theme of the system is used then.
  }
  document.documentElement.dataset.theme = theme;
})();
