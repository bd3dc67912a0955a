//! The files of the pages, which are embedded in the program.

/// A file.
pub struct Asset {
    /// Its address.
    pub path: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! assets {
    ($($path:literal $kind:ident $file:literal,)*) => {
        &[$(Asset {
            path: $path,
            kind: $kind,
            bytes: include_bytes!(concat!("../web/", $file)),
        }),*]
    };
}

/// All files.
pub const ASSETS: &[Asset] = assets! {
    "/" HTML "index.html",
    "/style.css" CSS "style.css",
    "/icon.svg" SVG "icon.svg",
    "/app.js" SCRIPT "app.js",
    "/api.js" SCRIPT "api.js",
    "/dom.js" SCRIPT "dom.js",
    "/format.js" SCRIPT "format.js",
    "/keys.js" SCRIPT "keys.js",
    "/now.js" SCRIPT "now.js",
    "/history.js" SCRIPT "history.js",
    "/plot.js" SCRIPT "plot.js",
    "/servers.js" SCRIPT "servers.js",
    "/configuration.js" SCRIPT "configuration.js",
    "/explain.js" SCRIPT "explain.js",
    "/reload.js" SCRIPT "reload.js",
    "/traces.js" SCRIPT "traces.js",
    "/trace.js" SCRIPT "trace.js",
    "/heat.js" SCRIPT "heat.js",
    "/sampling.js" SCRIPT "sampling.js",
    "/uplot.js" SCRIPT "vendor/uPlot.iife.min.js",
    "/uplot.css" CSS "vendor/uPlot.min.css",
    "/uplot.license" TEXT "vendor/uPlot.LICENSE",
};

/// The file at an address.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
