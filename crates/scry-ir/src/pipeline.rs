//! The front-end pipeline from source text to [`WgslKernel`].

use naga::compact::{KeepUnused, compact};
use naga::front::wgsl;
use naga::{Module, Span};

use crate::program::{Options, WgslKernel};
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
struct ParsedSource<'a> {
    module: Module,
    declarations: Declarations<'a>,
    /// The features that its directives enable, with their positions.
    enabled: Vec<(Features, Span)>,
}

/// Parses a source and validates all of its code, also what no entry point reaches.
fn parse_and_validate<'a>(
    source: &'a str,
    scanned: &'a Scanned,
) -> Result<ParsedSource<'a>, Box<Report>> {
    let declarations = Declarations::new(source, &scanned.tokens);
    budget::check(&declarations)?;
    let directives = directives::read(source, &scanned.tokens);
    let module = wgsl::parse_str(&directives.source).map_err(|e| {
        let mut report = diagnostics::parse(&e, source);
        let advice = bitcasts::advice(&report, &declarations);
        report.notes.extend(advice.into_iter().flatten().map(str::to_owned));
        Box::new(report)
    })?;
    type_layout::check_depth(&module, &declarations)?;
    validate::workgroup_sizes(&module, &declarations)?;
    let info = validate::source(&module)?;
    bitcasts::check(&module, &info, &declarations)?;
    constant_shifts::check(&declarations)?;
    Ok(ParsedSource { module, declarations, enabled: directives.features })
}

/// Returns the entry points and overrides of a source.
pub(crate) fn outline(source: &str, scanned: &Scanned) -> Result<Outline, Box<Report>> {
    let ParsedSource { module, .. } = parse_and_validate(source, scanned)?;
    Ok(Outline {
        entry_points: entry::compute_entry_points(&module),
        without_default: overrides::without_default(&module),
        overrides: overrides::Overrides::collect(&module)
            .into_interface(&overrides::Values::default()),
    })
}

/// Compiles a source to the validated module of one entry point, and its interface.
pub(crate) fn read(
    source: &str,
    scanned: &Scanned,
    options: &Options,
) -> Result<WgslKernel, Box<Report>> {
    let ParsedSource { mut module, declarations, enabled } = parse_and_validate(source, scanned)?;
    let declared = overrides::Overrides::collect(&module);
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
    Ok(WgslKernel { module, info, interface, source: SourceText::new(source) })
}
