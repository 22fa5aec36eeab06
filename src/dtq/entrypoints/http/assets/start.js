// Shows the OpenAPI document of the API that serves this page. It asks nobody else: no validator, no fonts.
window.addEventListener("load", () => {
  window.ui = SwaggerUIBundle({
    url: "/docs/openapi.json",
    dom_id: "#docs",
    deepLinking: true,
    validatorUrl: null,
    presets: [SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
  });
});
