function show(language) {
  document.documentElement.lang = language;
  document.documentElement.dataset.language = language;
}
// Who shows the page in another names the language behind its address.
if (["#en", "#ja"].includes(location.hash)) show(location.hash.slice(1));
for (const button of document.querySelectorAll("[data-to]")) {
  button.addEventListener("click", () => show(button.dataset.to));
}
