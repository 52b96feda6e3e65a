// Marks a page whose figures have stopped, and a form whose answer takes a while. Keeps what is typed into forms.
(() => {
  let heard = new Date(), timer
  const lost = () => {
    const bar = document.getElementById("lost")
    bar.textContent = `Not connected since ${heard.toISOString().slice(11, 19)}. This page shows what was known then.`
    bar.hidden = false
  }
  const alive = () => {
    heard = new Date()
    document.getElementById("lost").hidden = true
    clearTimeout(timer)
    timer = setTimeout(() => document.hidden || lost(), 60000) // the controller is never silent for that long
  }
  const on = (name, then) => document.addEventListener(name, then)
  on("htmx:sse:after:connection", alive)
  on("htmx:sse:before:message", alive)
  on("htmx:sse:close", () => clearTimeout(timer))
  const refused = status => status === 401 ? location.reload() : lost() // the page then says how to log in
  on("htmx:sse:error", e => refused(e.detail.status))
  on("htmx:response:error", e => refused(e.detail.ctx.response.status)) // of the first connection
  on("htmx:error", lost)
  htmx.registerExtension("typed", {
    htmx_before_morph_attr: (at, {attrName}) => attrName !== "value" || !(at instanceof HTMLInputElement) || at.value === at.defaultValue
  })
  on("htmx:sse:after:message", () => { // a log that goes on forever must not fill the memory
    const log = document.getElementById("log")
    while (log?.textContent.length > 1e6) log.firstElementChild.remove()
  })
  if (location.search === "?done") history.replaceState(null, "", location.pathname) // it is not said again after a reload
  on("submit", e => {
    const busy = e.submitter?.dataset.busy
    if (busy) { e.submitter.disabled = true; e.submitter.textContent = busy }
  })
})()
