//! Rewrites an entry point to run on a folded grid.
//!
//! The original entry point becomes an ordinary function. A new entry point of the same name takes
//! the physical ids, leaves if its workgroup is in excess, and calls the original with the ids that
//! it would have had on the grid that the caller asked for. All the invocations of a workgroup
//! leave together, before any side effect, so barriers stay sound.

use naga::{
    AddressSpace, BinaryOperator, Binding, Block, BuiltIn, Expression, Function, FunctionArgument,
    GlobalVariable, Handle, Literal, Module, ResourceBinding, Scalar, Span, Statement,
    StructMember, Type, TypeInner, VectorSize,
};

/// Where in a `LinearisedGrid` each member stands.
const GROUPS: u32 = 0;
const WIDTH: u32 = 1;
const HEIGHT: u32 = 2;
const ROWS: u32 = 3;
const LAST_ROW: u32 = 4;

type Expr = Handle<Expression>;

/// Folds the only entry point of a module. Returns the binding of the uniform buffer that the
/// folded entry point reads its grid from, which no variable of the module had.
///
/// Fails, with the builtin's name, if the entry point takes a builtin that folding does not know.
pub(crate) fn fold(module: &mut Module) -> Result<ResourceBinding, String> {
    let types = Types::declare(module);
    let binding = unused_binding(module);
    let params = module.global_variables.append(
        GlobalVariable {
            name: Some("fold_params".into()),
            space: AddressSpace::Uniform,
            binding: Some(binding),
            ty: types.params,
            init: None,
            memory_decorations: naga::MemoryDecorations::empty(),
        },
        Span::UNDEFINED,
    );
    let entry = &mut module.entry_points[0];
    let mut original = std::mem::take(&mut entry.function);
    original.name = Some(entry.name.clone());
    let size = entry.workgroup_size;

    let mut caller = Caller::new(types, size);
    caller.take_ids();
    let params = caller.add(Expression::GlobalVariable(params));
    let grid = caller.leave_if_in_excess(params);
    caller.logical_ids(grid);
    let mut arguments = Vec::with_capacity(original.arguments.len());
    for argument in &original.arguments {
        arguments.push(caller.rebuild(module, argument)?);
    }

    for argument in &mut original.arguments {
        argument.binding = None;
    }
    let original = module.functions.append(original, Span::UNDEFINED);
    caller.push(Statement::Call { function: original, arguments, result: None });
    caller.push(Statement::Return { value: None });
    module.entry_points[0].function = caller.function;
    Ok(binding)
}

/// A binding that no variable of the module has.
pub(crate) fn unused_binding(module: &Module) -> ResourceBinding {
    let mut found = ResourceBinding { group: 0, binding: 0 };
    let mut used = Vec::new();
    for (_, variable) in module.global_variables.iter() {
        if let Some(binding) = variable.binding {
            found.group = found.group.max(binding.group.saturating_add(1));
            used.push(binding);
        }
    }
    // There is no group above the last one.
    while used.contains(&found) {
        found.binding += 1;
    }
    found
}

/// A member of a structure that a buffer of ours holds.
pub(crate) fn member(name: &str, ty: Handle<Type>, offset: u32) -> StructMember {
    StructMember { name: Some(name.into()), ty, binding: None, offset }
}

/// The types that a folded entry point needs.
#[derive(Clone, Copy)]
struct Types {
    vec3: Handle<Type>,
    params: Handle<Type>,
}

impl Types {
    fn declare(module: &mut Module) -> Self {
        let mut insert = |name: Option<&str>, inner| {
            let name = name.map(str::to_owned);
            module.types.insert(Type { name, inner }, Span::UNDEFINED)
        };
        let u32 = insert(None, TypeInner::Scalar(Scalar::U32));
        let vec3 = insert(None, TypeInner::Vector { size: VectorSize::Tri, scalar: Scalar::U32 });
        let members = vec![
            member("groups", vec3, 0),
            member("width", u32, 12),
            member("height", u32, 16),
            member("rows", u32, 20),
            member("last_row_len", u32, 24),
            member("padding", u32, 28),
        ];
        let params = insert(Some("FoldParams"), TypeInner::Struct { members, span: 32 });
        Self { vec3, params }
    }
}

/// The values that the original's builtins are made of.
struct Logical {
    workgroup_id: Expr,
    global_invocation_id: Expr,
    groups: Expr,
}

/// The new entry point, as it is built.
struct Caller {
    function: Function,
    types: Types,
    size: [u32; 3],
    workgroup_id: Option<Expr>,
    local_invocation_id: Option<Expr>,
    logical: Option<Logical>,
}

/// The grid's position and extent, in the new entry point.
struct Grid {
    groups: Expr,
    flat: Expr,
}

impl Caller {
    fn new(types: Types, size: [u32; 3]) -> Self {
        Self {
            function: Function::default(),
            types,
            size,
            workgroup_id: None,
            local_invocation_id: None,
            logical: None,
        }
    }

    /// Appends an expression that needs no `Emit`.
    fn add(&mut self, expression: Expression) -> Expr {
        self.function.expressions.append(expression, Span::UNDEFINED)
    }

    /// Appends an expression and evaluates it here.
    fn emit(&mut self, expression: Expression) -> Expr {
        let before = self.function.expressions.len();
        let handle = self.add(expression);
        let range = self.function.expressions.range_from(before);
        self.push(Statement::Emit(range));
        handle
    }

    fn push(&mut self, statement: Statement) {
        self.function.body.push(statement, Span::UNDEFINED);
    }

    fn binary(&mut self, op: BinaryOperator, left: Expr, right: Expr) -> Expr {
        self.emit(Expression::Binary { op, left, right })
    }

    fn component(&mut self, base: Expr, index: u32) -> Expr {
        self.emit(Expression::AccessIndex { base, index })
    }

    /// Takes one more builtin as an argument.
    fn argument(&mut self, name: &str, ty: Handle<Type>, builtin: BuiltIn) -> Expr {
        let index = self.function.arguments.len() as u32;
        self.function.arguments.push(FunctionArgument {
            name: Some(name.into()),
            ty,
            binding: Some(Binding::BuiltIn(builtin)),
        });
        self.add(Expression::FunctionArgument(index))
    }

    fn take_ids(&mut self) {
        let vec3 = self.types.vec3;
        let workgroup = self.argument("physical_id", vec3, BuiltIn::WorkGroupId);
        let local = self.argument("local_id", vec3, BuiltIn::LocalInvocationId);
        self.workgroup_id = Some(workgroup);
        self.local_invocation_id = Some(local);
    }

    /// Returns from the excess workgroups, and numbers the others.
    fn leave_if_in_excess(&mut self, params: Expr) -> Grid {
        use BinaryOperator as Op;
        let physical = self.workgroup_id.expect("taken first of all");
        let params = self.emit(Expression::Load { pointer: params });
        let [groups, width, height, rows, last_row_len] =
            [GROUPS, WIDTH, HEIGHT, ROWS, LAST_ROW].map(|member| self.component(params, member));
        let [x, y, z] = [0, 1, 2].map(|axis| self.component(physical, axis));

        let below = self.binary(Op::Multiply, z, height);
        let row = self.binary(Op::Add, y, below);
        let past = self.binary(Op::GreaterEqual, row, rows);
        let one = self.add(Expression::Literal(Literal::U32(1)));
        let last = self.binary(Op::Subtract, rows, one);
        let in_last = self.binary(Op::Equal, row, last);
        let past_end = self.binary(Op::GreaterEqual, x, last_row_len);
        let past_last = self.binary(Op::LogicalAnd, in_last, past_end);
        let excess = self.binary(Op::LogicalOr, past, past_last);
        let mut leave = Block::new();
        leave.push(Statement::Return { value: None }, Span::UNDEFINED);
        self.push(Statement::If { condition: excess, accept: leave, reject: Block::new() });

        let before = self.binary(Op::Multiply, row, width);
        let flat = self.binary(Op::Add, before, x);
        Grid { groups, flat }
    }

    /// Computes the ids that the caller's grid gives this invocation.
    fn logical_ids(&mut self, grid: Grid) {
        use BinaryOperator as Op;
        let gx = self.component(grid.groups, 0);
        let gy = self.component(grid.groups, 1);
        let x = self.binary(Op::Modulo, grid.flat, gx);
        let above = self.binary(Op::Divide, grid.flat, gx);
        let y = self.binary(Op::Modulo, above, gy);
        let z = self.binary(Op::Divide, above, gy);
        let vec3 = self.types.vec3;
        let workgroup_id = self.emit(Expression::Compose { ty: vec3, components: vec![x, y, z] });
        let size = self.size.map(|extent| self.add(Expression::Literal(Literal::U32(extent))));
        let size = self.emit(Expression::Compose { ty: vec3, components: size.to_vec() });
        let origin = self.binary(Op::Multiply, workgroup_id, size);
        let local = self.local_invocation_id.expect("taken first of all");
        let global_invocation_id = self.binary(Op::Add, origin, local);
        self.logical = Some(Logical { workgroup_id, global_invocation_id, groups: grid.groups });
    }

    /// The value of one argument of the original.
    fn rebuild(&mut self, module: &Module, argument: &FunctionArgument) -> Result<Expr, String> {
        if let Some(binding) = &argument.binding {
            return self.builtin(binding, argument.ty);
        }
        let TypeInner::Struct { members, .. } = &module.types[argument.ty].inner else {
            return Err("an argument without a builtin".into());
        };
        let mut components = Vec::with_capacity(members.len());
        for member in members {
            let Some(binding) = &member.binding else {
                return Err("a member without a builtin".into());
            };
            components.push(self.builtin(binding, member.ty)?);
        }
        Ok(self.emit(Expression::Compose { ty: argument.ty, components }))
    }

    /// The value that a builtin has on the caller's grid.
    fn builtin(&mut self, binding: &Binding, ty: Handle<Type>) -> Result<Expr, String> {
        let Binding::BuiltIn(builtin) = *binding else {
            return Err("a location".into());
        };
        let logical = self.logical.as_ref().expect("computed before the arguments");
        Ok(match builtin {
            BuiltIn::WorkGroupId => logical.workgroup_id,
            BuiltIn::GlobalInvocationId => logical.global_invocation_id,
            BuiltIn::NumWorkGroups => logical.groups,
            BuiltIn::LocalInvocationId => self.local_invocation_id.expect("taken first of all"),
            BuiltIn::LocalInvocationIndex
            | BuiltIn::NumSubgroups
            | BuiltIn::SubgroupId
            | BuiltIn::SubgroupSize
            | BuiltIn::SubgroupInvocationId => self.argument(&format!("{builtin:?}"), ty, builtin),
            other => return Err(format!("{other:?}")),
        })
    }
}
