//! The front-end pipeline from source text to [`Inner`].

use naga::compact::{KeepUnused, compact};
use naga::front::wgsl;
use naga::{Module, Span};

use crate::program::{Inner, Options};
use crate::wgsl::declarations::Declarations;
use crate::wgsl::naga::cooperative;
use crate::wgsl::naga::scan::Scanned;
use crate::wgsl::naga::{align, bitcasts, budget, calls, constant_shifts, diagnostics, indices};
use crate::wgsl::report::Report;
use crate::wgsl::source_text::SourceText;
use crate::wgsl::{
    directives, entry, overrides, reflect, type_layout, uniformity, used_features, validate,
};
use crate::{Features, Outline};

/// A validated source, before an entry point is selected.
struct Whole<'a> {
    module: Module,
    declarations: Declarations<'a>,
    /// The features that its directives enable, with their positions.
    enabled: Vec<(Features, Span)>,
}

/// Parses and validates a whole source.
fn whole<'a>(source: &'a str, scanned: &'a Scanned) -> Result<Whole<'a>, Box<Report>> {
    let declarations = Declarations::new(source, &scanned.tokens);
    budget::check(&declarations)?;
    let directives = directives::read(source, &scanned.tokens);
    let module = wgsl::parse_str(&directives.source).map_err(|e| {
        let mut report = diagnostics::parse(&e, source);
        let advice = bitcasts::advice(&report, &declarations);
        report.notes.extend(advice.into_iter().flatten().map(str::to_owned));
        Box::new(report)
    })?;
    type_layout::shallow(&module, &declarations)?;
    validate::workgroups(&module, &declarations)?;
    let info = validate::whole(&module)?;
    bitcasts::check(&module, &info, &declarations)?;
    constant_shifts::check(&declarations)?;
    Ok(Whole { module, declarations, enabled: directives.features })
}

/// Reads the declarations of a source.
pub(crate) fn outline(source: &str, scanned: &Scanned) -> Result<Outline, Box<Report>> {
    let Whole { module, .. } = whole(source, scanned)?;
    Ok(Outline {
        entry_points: entry::compute(&module),
        without_default: overrides::without_default(&module),
        overrides: overrides::Declared::collect(&module)
            .into_interface(&overrides::Values::default()),
    })
}

/// Reads a source.
pub(crate) fn read(
    source: &str,
    scanned: &Scanned,
    options: &Options,
) -> Result<Inner, Box<Report>> {
    let Whole { mut module, declarations, enabled } = whole(source, scanned)?;
    let declared = overrides::Declared::collect(&module);
    let values = declared.resolve(&options.overrides)?;

    let name = entry::choose(&module, &declarations, options.entry.as_deref())?;
    entry::keep_only(&mut module, &name);
    compact(&mut module, KeepUnused::No);
    calls::check(&module)?;
    if cooperative::used(&module) {
        cooperative::order_operands(&mut module);
    }
    let module = overrides::apply(module, &values)?;

    align::check(&module, &declarations)?;
    let features = used_features::features(&module, &enabled, options.features)?;
    let info = validate::kernel(&module, options.features)?;
    indices::check(&module, &info)?;
    uniformity::check(&module, &info)?;
    let overrides = declared.into_interface(&values);
    let interface = reflect::interface(&module, &info, features, overrides)?;
    Ok(Inner { module, info, interface, source: SourceText::new(source) })
}
