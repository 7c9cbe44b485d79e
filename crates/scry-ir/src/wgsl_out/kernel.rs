//! The complete text: directives, declarations, the entry point and its parameters.

use super::text::Text;
use super::{Emitter, Prefixes};
use crate::ShaderError;
use crate::kir::{Builtin, Inst};

impl Emitter<'_> {
    /// Writes the complete text.
    pub(super) fn kernel(mut self) -> Result<String, ShaderError> {
        let kir = self.kir;
        self.statements(&kir.body)?;
        let mut text = Text::default();
        self.directives(&mut text);
        self.memory_variables
            .types
            .iter()
            .chain(&self.memory_variables.globals)
            .for_each(|line| text.line(line));
        if !self.memory_variables.globals.is_empty() {
            text.line("");
        }
        self.signature(&mut text);
        for line in self
            .memory_variables
            .locals
            .iter()
            .chain(&self.variables())
            .chain(&self.memory_variables.uses)
        {
            text.line(format!("    {line}"));
        }
        let body = std::mem::take(&mut self.body).into_string();
        Ok(text.into_string() + &body + "}\n")
    }

    fn directives(&self, text: &mut Text) {
        let mut found = Vec::new();
        if self.native_f16 {
            found.push("enable f16;");
        }
        let needs_subgroups = |inst: &Inst| match inst {
            Inst::Subgroup(_) => true,
            Inst::Builtin(builtin) => attribute(*builtin).0.contains("subgroup"),
            _ => false,
        };
        if self.kir.values.iter().any(|definition| needs_subgroups(&definition.inst)) {
            // KIR permits them in control flow that is not uniform over the subgroup.
            if self.enables_subgroups {
                found.push("enable subgroups;");
            }
            found.push("diagnostic(off, subgroup_uniformity);");
        }
        if !found.is_empty() {
            found.push("");
        }
        found.into_iter().for_each(|line| text.line(line));
    }

    fn signature(&self, text: &mut Text) {
        let [x, y, z] = self.kir.workgroup_size;
        let size = match (y, z) {
            (1, 1) => format!("{x}"),
            (_, 1) => format!("{x}, {y}"),
            _ => format!("{x}, {y}, {z}"),
        };
        text.line(format!("@compute @workgroup_size({size})"));
        let name = &self.name;
        if self.parameters.is_empty() {
            text.line(format!("fn {name}() {{"));
            return;
        }
        text.line(format!("fn {name}("));
        for (builtin, parameter) in &self.parameters {
            let scalar = builtin.contains("subgroup");
            let ty = if scalar { "u32" } else { "vec3<u32>" };
            text.line(format!("    @builtin({builtin}) {parameter}: {ty},"));
        }
        text.line(") {");
    }

    /// Returns the declarations of the kernel's variables, of values that are `var`s, and of flags.
    fn variables(&self) -> Vec<String> {
        let Prefixes { value, variable, flag, .. } = &self.prefixes;
        let vars = self.kir.vars.iter().enumerate();
        let vars = vars.map(|(i, ty)| format!("var {variable}{i}: {};", self.type_name(*ty)));
        let escaping = self.escaping.iter().enumerate().filter(|(_, escaping)| **escaping);
        let escaping = escaping.filter(|(i, _)| self.texts[*i] == format!("{value}{i}"));
        let escaping = escaping
            .map(|(i, _)| format!("var {value}{i}: {};", self.type_name(self.kir.values[i].ty)));
        let flags = self.flags.iter().map(|label| format!("var {flag}{}: bool;", label.0));
        vars.chain(escaping).chain(flags).collect()
    }

    /// Returns the expression of a built-in value.
    pub(super) fn builtin(&mut self, builtin: Builtin) -> String {
        let (attribute, axis) = attribute(builtin);
        let names = &mut self.names;
        let parameter = self.parameters.entry(attribute).or_insert_with(|| names.unique(attribute));
        match axis {
            Some(axis) => format!("{parameter}.{}", ["x", "y", "z"][usize::from(axis) % 3]),
            None => parameter.clone(),
        }
    }
}

/// Returns the WGSL name of a built-in value, and the axis of which it is a component.
fn attribute(builtin: Builtin) -> (&'static str, Option<u8>) {
    match builtin {
        Builtin::LocalId(axis) => ("local_invocation_id", Some(axis)),
        Builtin::GroupId(axis) => ("workgroup_id", Some(axis)),
        Builtin::GroupCount(axis) => ("num_workgroups", Some(axis)),
        Builtin::SubgroupSize => ("subgroup_size", None),
        Builtin::SubgroupLane => ("subgroup_invocation_id", None),
        Builtin::SubgroupId => ("subgroup_id", None),
        Builtin::SubgroupCount => ("num_subgroups", None),
    }
}
