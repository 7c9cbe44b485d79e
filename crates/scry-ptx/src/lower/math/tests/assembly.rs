//! Tests that every math function assembles, for every type and target.

use scry_ir::kir::Type;

use super::{ALL_FUNCTIONS, Function, lower};
use crate::asm::Address;
use crate::assembler::assemble;
use crate::lower::ptx_type;
use crate::lower::tests::support::TARGETS;
use crate::module::{KernelParam, PtxEntry, PtxModule};
use crate::target::Target;
use crate::types::{PtxType, StateSpace};

/// Returns a kernel that loads operands, computes a function, and stores the result.
fn kernel(function: Function, ty: Type, target: Target, name: &str) -> PtxEntry {
    let types = [ty, function.second(ty).unwrap_or(ty)].map(ptx_type);
    let mut memory = None;
    let (mut body, result) = lower(function, ty, target, |b| {
        let data = b.load(StateSpace::Param, PtxType::U64, Address::symbol("data", 0), 1, false)[0];
        memory = Some(data);
        [0, 8].map(|at| {
            let ty = types[usize::from(at == 8)];
            b.load(StateSpace::Global, ty, Address::reg(data, at), 1, false)[0]
        })
    });
    let data = memory.expect("`begin` is called");
    let ty = ptx_type(function.result(ty));
    body.store(StateSpace::Global, ty, Address::reg(data, 16), &[result.into()]);
    body.ret();
    let mut kernel = PtxEntry::new(name, target, [32, 1, 1]);
    kernel.params = vec![KernelParam::Pointer { name: "data".to_owned() }];
    kernel.body = body;
    kernel
}

fn module(target: Target) -> String {
    let mut module = PtxModule::new(target);
    for (nth, function) in ALL_FUNCTIONS.into_iter().enumerate() {
        for ty in [Type::F16, Type::F32, Type::F64] {
            let name = format!("function_{nth}_{ty:?}").to_lowercase();
            module = module.with(kernel(function, ty, target, &name));
        }
    }
    module.to_string()
}

#[test]
fn every_function_assembles() {
    for target in TARGETS {
        let text = module(target);
        assert!(!text.contains(" bra "), "a function branches");
        assemble(&text, target);
    }
}
