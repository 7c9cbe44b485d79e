//! From text to [`Inner`]: the order of the steps, and nothing else.

use naga::compact::{KeepUnused, compact};
use naga::front::wgsl;

use crate::Outline;
use crate::program::{Inner, Options};
use crate::report::Report;
use crate::scan::Scanned;
use crate::{directives, entry, indices, naga_error, overrides, reflect, used, validate};

/// Reads what a source declares.
pub(crate) fn outline(source: &str, scanned: &Scanned) -> Result<Outline, Box<Report>> {
    let directives = directives::read(source, &scanned.tokens);
    let module =
        wgsl::parse_str(&directives.source).map_err(|e| Box::new(naga_error::parse(&e)))?;
    validate::whole(&module)?;
    Ok(Outline {
        entry_points: entry::compute(&module),
        without_default: overrides::without_default(&module),
        overrides: overrides::Declared::collect(&module).into_interface(&overrides::Values::new()),
    })
}

/// Reads a source.
pub(crate) fn read(
    source: &str,
    scanned: &Scanned,
    options: &Options,
) -> Result<Inner, Box<Report>> {
    let directives = directives::read(source, &scanned.tokens);
    let mut module =
        wgsl::parse_str(&directives.source).map_err(|e| Box::new(naga_error::parse(&e)))?;
    validate::whole(&module)?;
    let declared = overrides::Declared::collect(&module);
    let values = declared.resolve(&options.overrides)?;

    let name = entry::choose(&module, options.entry.as_deref())?;
    entry::keep_only(&mut module, &name);
    compact(&mut module, KeepUnused::No);
    let module = overrides::apply(module, &values)?;

    let features = used::features(&module, &directives.features, options.features)?;
    let info = validate::kernel(&module, options.features)?;
    indices::check(&module, &info)?;
    let overrides = declared.into_interface(&values);
    let interface = reflect::interface(&module, &info, features, overrides)?;
    Ok(Inner {
        module,
        info,
        interface,
    })
}
