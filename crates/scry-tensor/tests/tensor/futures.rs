//! Async forms: each function that blocks has one, with equal results, on devices whose threads
//! must not block, with dropped futures, and on lost devices.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use scry_gpu::testing::{self, Fault, FaultPlan, open_with_faults};
use scry_gpu::{Device, GpuError};
use scry_tensor::{BoundPlan, DType, Graph, Plan, Result, Tensor, TensorBatch};

use crate::support::{cpu, ok};

type Boxed<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future at most `polls` times, each once the task is woken; `None` if it is pending then.
fn poll_times<T>(future: &mut Boxed<'_, T>, polls: usize) -> Option<T> {
    let waker = Arc::new(Unpark(thread::current())).into();
    for poll in 0..polls {
        if poll > 0 {
            thread::park();
        }
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
    }
    None
}

/// What the functions are called on.
struct World {
    gpu: Device,
    other: Device,
    x: Tensor,
    mask: Tensor,
    graph: Graph,
    output: Tensor,
    plan: Plan,
    bound: BoundPlan,
}

const WGSL: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(8) fn twice(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] = 2 * x[id.x]; }
    }";

impl World {
    /// Prepares all without blocking.
    async fn new(gpu: &Device, other: &Device) -> Result<Self> {
        let x = Tensor::new_async([[1.0f32, -2.0, 3.0], [4.0, 5.0, -6.0]], gpu).await?;
        let mask = x.gt(0.0)?;
        let graph = Graph::new(gpu)?;
        let input = graph.input("x", (graph.dim("rows", 1..=4), 3))?;
        let count = graph.state("count", [1])?;
        count.write(.., &count.read().add(1.0)?)?;
        let output = (input.exp()?.sum(-1)? + count.read())?;
        let plan = graph.compile_async(std::slice::from_ref(&output)).await?;
        let bound = plan.bind_async(&[("x", &x)]).await?;
        let (gpu, other) = (gpu.clone(), other.clone());
        Ok(Self { gpu, other, x, mask, graph, output, plan, bound })
    }

    fn outputs(&self) -> &[Tensor] {
        std::slice::from_ref(&self.output)
    }

    /// Returns the inputs of a run.
    fn inputs(&self) -> [(&str, &Tensor); 1] {
        [("x", &self.x)]
    }
}

/// When the blocking form waits for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Whenever work is unfinished.
    Work,
    /// While the queue is full.
    Room,
    /// For kernels that are compiled.
    Kernels,
}

/// A function with its async form. Both return their result as text.
struct Pair {
    name: &'static str,
    waits: Waits,
    blocking: fn(&World) -> Result<String>,
    awaited: for<'w> fn(&'w World) -> Boxed<'w, Result<String>>,
}

macro_rules! pairs {
    ($($name:literal $waits:ident |$w:ident| $blocking:expr, $awaited:expr;)*) => {
        vec![$(Pair {
            name: $name,
            waits: Waits::$waits,
            blocking: |$w| Ok(format!("{:?}", $blocking)),
            awaited: |$w| Box::pin(async move { Ok(format!("{:?}", $awaited)) }),
        }),*]
    };
}

/// Returns the shapes and types of tensors.
fn shapes(tensors: &[Tensor]) -> Vec<String> {
    tensors.iter().map(|it| format!("{}{}", it.dtype(), it.shape())).collect()
}

fn batch(w: &World) -> Result<(TensorBatch, scry_tensor::BatchHandle)> {
    let mut batch = TensorBatch::new(&w.gpu)?;
    let x = batch.import(&w.x)?;
    let y = batch.scale(x, 2.0)?;
    Ok((batch, y))
}

fn pairs() -> Vec<Pair> {
    pairs_of_tensors().into_iter().chain(pairs_of_graphs()).collect()
}

fn pairs_of_tensors() -> Vec<Pair> {
    pairs! {
        "Tensor::to_vec" Work |w| w.x.to_vec::<f32>()?, w.x.to_vec_async::<f32>().await?;
        "Tensor::item" Work
            |w| w.x.i((0, 1))?.item::<f32>()?, w.x.i((0, 1))?.item_async::<f32>().await?;
        "Tensor::to_string" Work |w| {
            let text = w.x.to_string();
            match text.contains("must not block") {
                true => w.x.to_vec::<f32>().map(|_| text)?,
                false => text,
            }
        }, w.x.to_string_async().await?;
        "Tensor::to" Work
            |w| shapes(&[w.x.to(&w.other)?]), shapes(&[w.x.to_async(&w.other).await?]);
        "Tensor::i" Work
            |w| shapes(&[w.x.i(&w.mask)?]), shapes(&[w.x.i_async(&w.mask).await?]);
        "Tensor::new" Room
            |w| shapes(&[Tensor::new([1, 2], &w.gpu)?]),
            shapes(&[Tensor::new_async([1, 2], &w.gpu).await?]);
        "Tensor::from_slice" Room
            |w| shapes(&[Tensor::from_slice(&[1, 2], [2], &w.gpu)?]),
            shapes(&[Tensor::from_slice_async(&[1, 2], [2], &w.gpu).await?]);
        "Tensor::from_blocks" Room
            |w| shapes(&[Tensor::from_blocks(&[0; 34], DType::Q8_0, [32], &w.gpu)?]),
            shapes(&[Tensor::from_blocks_async(&[0; 34], DType::Q8_0, [32], &w.gpu).await?]);
        "Tensor::arange" Room
            |w| shapes(&[Tensor::arange(4, DType::U32, &w.gpu)?]),
            shapes(&[Tensor::arange_async(4, DType::U32, &w.gpu).await?]);
        "Tensor::arange_step" Room
            |w| shapes(&[Tensor::arange_step(1, 9, 3, DType::F16, &w.gpu)?]),
            shapes(&[Tensor::arange_step_async(1, 9, 3, DType::F16, &w.gpu).await?]);
        "Tensor::linspace" Room
            |w| shapes(&[Tensor::linspace(0.0, 1.0, 5, DType::F32, &w.gpu)?]),
            shapes(&[Tensor::linspace_async(0.0, 1.0, 5, DType::F32, &w.gpu).await?]);
    }
}

fn pairs_of_graphs() -> Vec<Pair> {
    pairs! {
        "Graph::compile" Kernels
            |w| w.graph.compile(w.outputs())?, w.graph.compile_async(w.outputs()).await?;
        "Graph::compile_sharing" Kernels
            |w| w.graph.compile_sharing(w.outputs(), &w.plan)?,
            w.graph.compile_sharing_async(w.outputs(), &w.plan).await?;
        "Graph::kernel" Kernels |w| {
            let g = Graph::new(&w.gpu)?;
            shapes(&g.kernel(WGSL, &[&g.input("x", [8])?], &[([8].into(), DType::F32)])?)
        }, {
            let g = Graph::new(&w.gpu)?;
            let (x, output) = (g.input("x", [8])?, ([8].into(), DType::F32));
            shapes(&g.kernel_async(WGSL, &[&x], &[output]).await?)
        };
        "Plan::run" Room
            |w| shapes(&w.plan.run(&w.inputs())?), shapes(&w.plan.run_async(&w.inputs()).await?);
        "Plan::bind" Kernels
            |w| w.plan.bind(&w.inputs())?, w.plan.bind_async(&w.inputs()).await?;
        "Plan::check" Work
            |w| w.plan.check(&w.inputs())?, w.plan.check_async(&w.inputs()).await?;
        "Plan::run_checked" Work
            |w| shapes(&w.plan.run_checked(&w.inputs())?),
            shapes(&w.plan.run_checked_async(&w.inputs()).await?);
        "Plan::audit_f16" Work
            |w| w.plan.audit_f16(&w.inputs())?, w.plan.audit_f16_async(&w.inputs()).await?;
        "Plan::explain" Kernels |w| w.plan.explain()?, w.plan.explain_async().await?;
        "Plan::to_dot" Kernels |w| w.plan.to_dot()?, w.plan.to_dot_async().await?;
        "BoundPlan::run" Room |w| w.bound.run()?, w.bound.run_async().await?;
        "BoundPlan::run_times" Room
            |w| w.bound.run_times(3)?, w.bound.run_times_async(3).await?;
        "TensorBatch::upload" Room |w| {
            TensorBatch::new(&w.gpu)?.upload(&[1, 2], [2])?;
            "uploaded"
        }, {
            TensorBatch::new(&w.gpu)?.upload_async(&[1, 2], [2]).await?;
            "uploaded"
        };
        "TensorBatch::execute" Room |w| batch(w)?.0.execute()?, {
            let mut batch = batch(w)?.0;
            batch.execute_async().await?
        };
        "TensorBatch::read" Work |w| {
            let mut batch = TensorBatch::new(&w.gpu)?;
            let x = batch.import(&w.x)?;
            batch.read::<f32>(x)?
        }, {
            let (mut batch, y) = batch(w)?;
            batch.execute_async().await?;
            let twice = batch.read_async::<f32>(y).await?;
            twice.into_iter().map(|x| x / 2.0).collect::<Vec<_>>()
        };
    }
}

/// Returns the functions whose source has a text, by the names of their public functions.
fn functions_with(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path())
        {
            if entry.is_dir() {
                let is_test = entry.ends_with("tests");
                folders.extend((!is_test).then_some(entry));
                continue;
            }
            let source = std::fs::read_to_string(&entry).expect("a source");
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            let mut function = String::new();
            for line in code.lines().map(str::trim).filter(|it| !it.starts_with("//")) {
                let name = line.split_once("fn ").and_then(|(before, after)| {
                    let is_item = before.is_empty() || before.ends_with(' ');
                    is_item.then(|| after.split(['(', '<']).next().unwrap_or_default())
                });
                if let Some(name) = name {
                    function = name.to_owned();
                }
                if line.contains(text) {
                    found.insert(function.clone());
                }
            }
        }
    }
    found
}

#[test]
fn every_blocking_function_has_its_pair() {
    let listed: BTreeSet<String> = pairs()
        .iter()
        .map(|pair| pair.name.rsplit("::").next().unwrap_or_default().to_owned())
        // A feature.
        .chain(["from_ndarray".to_owned(), "to_ndarray".to_owned()])
        .collect();
    // What calls one of the functions below blocks; `fmt` prints, `read` is that of all reads, and
    // `now` of all uploads.
    let mut blocking = functions_with("Waiting::Blocking");
    blocking.append(&mut functions_with(".now(device)"));
    let own = ["fmt", "ready", "download", "compile", "submit", "read", "now", "to"];
    for function in blocking.iter().filter(|it| !own.contains(&it.as_str())) {
        assert!(listed.contains(function), "`{function}` blocks, and is not in the table");
    }
    for function in listed.iter() {
        let name = format!("fn {function}_async");
        assert!(!functions_with(&name).is_empty(), "there is no `{name}`");
    }
    // Only `Waiting` calls what waits in scry-gpu.
    for call in [".download_bytes()", ".download()", ".wait()", ".get(0)", ".submit_timed("] {
        let callers = functions_with(call);
        assert!(callers.iter().all(|it| it == "download"), "{call}: {callers:?}");
    }
}

#[test]
fn pairs_have_equal_results() {
    let (gpu, other) = (cpu(), cpu());
    let world = || ok(pollster::block_on(World::new(&gpu, &other)));
    let (blocking, awaited) = (world(), world());
    for pair in pairs() {
        let wanted = ok((pair.blocking)(&blocking));
        let found = ok(pollster::block_on((pair.awaited)(&awaited)));
        assert_eq!(found, wanted, "{}", pair.name);
    }
    let count = |world: &World| ok(ok(world.plan.state("count")).item::<f32>());
    assert_eq!(count(&blocking), count(&awaited));
}

#[test]
fn nothing_blocks_where_threads_must_not() {
    let open = || open_with_faults("cpu", &FaultPlan::cannot_block()).unwrap();
    let (gpu, other) = (open(), open());
    let world = ok(pollster::block_on(World::new(&gpu, &other)));
    let busy = gpu.alloc::<u32>(4).unwrap();
    for Pair { name, waits, blocking, awaited } in pairs() {
        pollster::block_on(gpu.wait_async()).unwrap();
        let unfinished = match waits {
            Waits::Work => 1,
            Waits::Room => 256,
            Waits::Kernels => 0,
        };
        for value in 0..unfinished {
            drop(gpu.batch().fill(&busy, value).unwrap().submit_async().unwrap());
        }
        if waits != Waits::Kernels {
            let error = blocking(&world).expect_err(name);
            assert!(matches!(error.gpu(), Some(GpuError::WouldBlock(_))), "{name}: {error}");
        }
        let result = pollster::block_on(awaited(&world));
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // Functions without a pair submit, and do not wait.
    pollster::block_on(gpu.wait_async()).unwrap();
    for _ in 0..30 {
        ok(Tensor::zeros([4], DType::F32, &gpu));
        ok(Tensor::eye(3, DType::F32, &gpu));
        ok(ok(world.x.t()).contiguous());
        ok(world.plan.set_state("count", &ok(Tensor::ones([1], DType::F32, &gpu))));
        ok(world.plan.state("count"));
    }
}

/// Memory of a result is used again: what failed before is no failure of the next result.
#[test]
fn failures_of_dropped_results_are_not_inherited() {
    for count in [8, 1 << 20] {
        let (gpu, _) = testing::reporting(testing::null_info(), &[0]);
        let x = ok(Tensor::from_slice(&vec![1.0f32; count], [count], &gpu));
        drop(ok(x.exp()));
        gpu.release_finished().unwrap();
        let y = ok(x.neg());
        assert_eq!(ok(pollster::block_on(y.to_vec_async::<f32>())).len(), count);
    }
}

/// A run that was submitted during a read once changed the last elements that it returned.
#[test]
fn reads_do_not_mix_runs() {
    // More bytes than a read has in flight.
    const COUNT: usize = 13 << 20;
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let count = ok(g.state("count", [1]));
    ok(count.write(.., &ok(count.read().add(1.0))));
    let plan = ok(g.compile(&[ok(count.read().expand([COUNT]))]));
    let bound = ok(plan.bind(&[]));
    for run in [1.0, 3.0] {
        ok(bound.run());
        let mut read: Boxed<'_, _> = Box::pin(bound.outputs()[0].to_vec_async::<f32>());
        let first = poll_times(&mut read, 1);
        ok(bound.run());
        let elements = first.or_else(|| poll_times(&mut read, usize::MAX));
        assert!(ok(elements.expect("it is awaited")) == vec![run; COUNT]);
    }
}

#[test]
fn large_transfers_and_plans_wait_in_futures() {
    let gpu = open_with_faults("cpu", &FaultPlan::cannot_block()).unwrap();
    let result: Result<()> = pollster::block_on(async {
        let numbers: Vec<f32> = (0..3 << 20).map(|n| n as f32).collect();
        let x = Tensor::from_slice_async(&numbers, [3, 1 << 20], &gpu).await?;
        let read = x.t()?.to_vec_async::<f32>().await?;
        assert_eq!(read[..4], [0.0, 1_048_576.0, 2_097_152.0, 1.0]);
        // More submissions than the queue holds, of which none is awaited.
        let g = Graph::new(&gpu)?;
        let plan = g.compile_async(&[g.input("x", [4])?.add(1.0)?]).await?;
        let mut x = Tensor::new_async([0.0f32; 4], &gpu).await?;
        for _ in 0..600 {
            x = plan.run_async(&[("x", &x)]).await?.remove(0);
        }
        assert_eq!(x.to_vec_async::<f32>().await?, [600.0; 4]);
        // A plan of many operations is checked one by one.
        let mut y = g.input("y", [4])?;
        for n in 0..300 {
            y = if n % 2 == 0 { y.add(1.0)? } else { y.neg()? };
        }
        let plan = g.compile_async(&[y]).await?;
        let y = Tensor::new_async([1.0f32; 4], &gpu).await?;
        plan.check_async(&[("y", &y)]).await?;
        assert_eq!(plan.run_checked_async(&[("y", &y)]).await?.len(), 1);
        Ok(())
    });
    ok(result);
}

#[test]
fn dropped_futures_leave_everything_usable() {
    let (gpu, other) = (cpu(), cpu());
    let world = ok(pollster::block_on(World::new(&gpu, &other)));
    for pair in pairs() {
        let wanted = ok(pollster::block_on((pair.awaited)(&world)));
        for polls in 0.. {
            let mut future = (pair.awaited)(&world);
            let done = poll_times(&mut future, polls);
            drop(future);
            let again = ok(pollster::block_on((pair.awaited)(&world)));
            assert_eq!(again, wanted, "{} after {polls} polls", pair.name);
            if done.is_some() {
                break;
            }
        }
    }
}

#[test]
fn dropped_execution_keeps_operations() {
    let gpu = open_with_faults("cpu", &FaultPlan::cannot_block()).unwrap();
    for polls in 0.. {
        let mut batch = ok(TensorBatch::new(&gpu));
        let x = ok(batch.upload(&[1.0f32, 2.0], [2]));
        let y = ok(batch.scale(x, 3.0));
        let done = {
            let mut execution: Boxed<'_, Result<()>> = Box::pin(batch.execute_async());
            poll_times(&mut execution, polls)
        };
        assert_eq!(ok(pollster::block_on(batch.read_async::<f32>(x))), [1.0, 2.0]);
        if done.is_some() {
            break;
        }
        assert!(pollster::block_on(batch.read_async::<f32>(y)).is_err());
        ok(pollster::block_on(batch.execute_async()));
        assert_eq!(ok(pollster::block_on(batch.read_async::<f32>(y))), [3.0, 6.0]);
    }
}

#[test]
fn dropped_check_restores_states() {
    let gpu = open_with_faults("cpu", &FaultPlan::cannot_block()).unwrap();
    let world = ok(pollster::block_on(World::new(&gpu, &gpu)));
    for polls in 0.. {
        let mut check: Boxed<'_, Result<usize>> = Box::pin(world.plan.check_async(&world.inputs()));
        let done = poll_times(&mut check, polls);
        drop(check);
        let count = ok(world.plan.state("count"));
        assert_eq!(ok(pollster::block_on(count.item_async::<f32>())), 0.0, "{polls} polls");
        if done.is_some() {
            break;
        }
    }
}

#[test]
fn checked_run_sees_states_before_it() {
    let gpu = open_with_faults("cpu", &FaultPlan::cannot_block()).unwrap();
    let checked = |polls| -> Result<bool> {
        let g = Graph::new(&gpu)?;
        let level = g.state("level", [2])?;
        let before = level.read();
        level.write(.., &before.add(1.0)?)?;
        let plan = pollster::block_on(g.compile_async(&[before.sqrt()?.add(1.0)?]))?;
        let mut run: Boxed<'_, Result<Vec<Tensor>>> = Box::pin(plan.run_checked_async(&[]));
        let is_done = poll_times(&mut run, polls).is_some();
        // Work that is submitted meanwhile changes the state, and the elements are read later.
        if !is_done && polls > 0 {
            let negative = Tensor::full([2], -1.0, DType::F32, &gpu)?.add(0.0)?;
            plan.set_state("level", &negative)?;
            pollster::block_on(run)?;
        }
        Ok(is_done)
    };
    let mut polls = 1;
    while !checked(polls).unwrap_or_else(|error| panic!("after {polls} polls: {error}")) {
        polls += 1;
    }
    assert!(polls > 2, "{polls}");
}

#[test]
fn losses_complete_every_future() {
    for pair in pairs() {
        for calls in 0.. {
            let plan = FaultPlan::new(Fault::DeviceLost, u64::MAX);
            let gpu = open_with_faults("cpu", &plan).unwrap();
            let world = ok(pollster::block_on(World::new(&gpu, &gpu)));
            // Other calls of the driver than those of the first cases are as many.
            plan.fail_after(calls);
            match pollster::block_on((pair.awaited)(&world)) {
                Ok(_) => break,
                Err(error) => {
                    let lost = matches!(error.gpu(), Some(GpuError::DeviceLost(_)));
                    assert!(lost, "{}, call {calls}: {error}", pair.name);
                }
            }
        }
    }
}

#[test]
fn many_futures_share_a_thread() {
    let gpu = cpu();
    let g = ok(Graph::new(&gpu));
    let plan = ok(g.compile(&[ok(ok(g.input("x", (g.dim("n", 1..=9),))).mul(2.0))]));
    let one = async |n: usize| -> Result<Vec<f32>> {
        let x = Tensor::from_slice_async(&vec![n as f32; 1 + n % 9], [1 + n % 9], &gpu).await?;
        plan.run_async(&[("x", &x)]).await?[0].to_vec_async().await
    };
    let mut pending: Vec<_> = (0..500).map(|n| (n, Box::pin(one(n)))).collect();
    pollster::block_on(std::future::poll_fn(|cx| {
        pending.retain_mut(|(n, future)| match future.as_mut().poll(cx) {
            Poll::Ready(result) => {
                assert_eq!(ok(result), vec![2.0 * *n as f32; 1 + *n % 9]);
                false
            }
            Poll::Pending => true,
        });
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }));
}

/// Returns a plan whose state counts the runs, and adds up its input.
fn counting(gpu: &Device) -> Plan {
    ok(pollster::block_on(async {
        let g = Graph::new(gpu)?;
        let count = g.state("count", [1])?;
        count.write(.., &count.read().add(1.0)?)?;
        let total = g.state("total", [2, 2])?;
        total.write(.., &total.read().add(&g.input("x", [2, 2])?)?)?;
        g.compile_async(&[count.read(), total.read()]).await
    }))
}

fn count(plan: &Plan, gpu: &Device) -> f32 {
    pollster::block_on(gpu.wait_async()).expect("the device");
    ok(pollster::block_on(ok(plan.state("count")).item_async::<f32>()))
}

/// Leaves room for some submissions in the queue.
fn fill(gpu: &Device, room: u32) {
    let busy = gpu.alloc::<u32>(4).expect("memory");
    for value in room..256 {
        let mut batch = gpu.batch();
        let filled = batch.fill(&busy, value).and_then(|batch| batch.submit_async());
        drop(filled.expect("room in the queue"));
    }
}

#[test]
fn dropped_runs_of_views_do_not_run() {
    let gpu = cpu();
    let plan = counting(&gpu);
    let x = ok(ok(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu)).t());
    let mut run: Boxed<'_, _> = Box::pin(plan.run_async(&[("x", &x)]));
    assert!(poll_times(&mut run, 1).is_none());
    drop(run);
    thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(count(&plan, &gpu), 0.0);
}

#[test]
fn runs_are_not_repeated_if_the_queue_is_full() {
    let gpu = open_with_faults("cpu", &FaultPlan::cannot_block()).unwrap();
    let plan = counting(&gpu);
    let x = ok(pollster::block_on(Tensor::new_async([[1.0f32; 2]; 2], &gpu)));
    let bound = ok(pollster::block_on(plan.bind_async(&[("x", &x)])));
    pollster::block_on(gpu.wait_async()).unwrap();
    fill(&gpu, 1);
    ok(pollster::block_on(bound.run_times_async(128)));
    assert_eq!(count(&plan, &gpu), 128.0);
    for room in 1..6 {
        pollster::block_on(gpu.wait_async()).unwrap();
        fill(&gpu, room);
        ok(pollster::block_on(plan.check_async(&[("x", &x)])));
        assert_eq!(count(&plan, &gpu), 128.0, "room for {room}");
    }
}
