//! Async forms: equal results, dropped futures, and devices whose threads must not block.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use scry_gpu::testing::{FaultPlan, open_with_faults};
use scry_models::{Decoder, Device, Encoder, Sampling};

use crate::bert::Bert;
use crate::decoding::{cpu, generated, load, model, tokens};
use crate::files::Stored;
use crate::support::ok;

/// Polls a future at most a number of times; `None` if it is pending then.
fn poll_times<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(value);
        }
        std::thread::yield_now();
    }
    None
}

#[test]
fn async_forms_generate_the_same() {
    let (model, gpu) = (model(Stored::Q4_1), cpu());
    let prompt = tokens(5, 20);
    let options = Sampling::new().max_tokens(60);
    let mut decoder = load(&model, &gpu);
    let wanted: Vec<String> = ok(decoder.complete_tokens(&prompt, &options)).map(ok).collect();
    let logits = ok(decoder.logits(&prompt));
    let mut decoder =
        ok(pollster::block_on(Decoder::options().capacity(96).load_async(&model.path, &gpu)));
    let found = pollster::block_on(async {
        let mut generation = ok(decoder.complete_tokens_async(&prompt, &options).await);
        let mut pieces = Vec::new();
        while let Some(piece) = generation.next_async().await {
            pieces.push(ok(piece));
        }
        pieces
    });
    assert_eq!(found.concat(), wanted.concat());
    assert_eq!(ok(pollster::block_on(decoder.logits_async(&prompt))), logits);
}

#[test]
fn dropped_futures_lose_no_tokens() {
    let (model, gpu) = (model(Stored::F32), cpu());
    let prompt = tokens(6, 20);
    let options = Sampling::new().max_tokens(60);
    let wanted = generated(&mut load(&model, &gpu), &prompt, &options);
    for polls in 0..6 {
        let mut decoder = load(&model, &gpu);
        // A prompt that is dropped, and then one that is awaited.
        drop(poll_times(decoder.complete_tokens_async(&prompt, &options), polls));
        let mut generation =
            ok(pollster::block_on(decoder.complete_tokens_async(&prompt, &options)));
        // Futures of pieces that are dropped, and pieces that block in between.
        for n in 0.. {
            let piece = match n % 3 {
                0 => generation.next(),
                1 => match poll_times(generation.next_async(), polls) {
                    Some(piece) => piece,
                    None => continue,
                },
                _ => pollster::block_on(generation.next_async()),
            };
            match piece {
                Some(piece) => drop(ok(piece)),
                None => break,
            }
        }
        let reason = generation.stop_reason().expect("the end has a reason");
        drop(generation);
        assert_eq!((decoder.context()[prompt.len()..].to_vec(), reason), wanted, "{polls} polls");
    }
}

/// Opens a device whose queue holds 256 submissions, and whose threads must not block.
fn nonblocking() -> Device {
    ok(open_with_faults("cpu", &FaultPlan::cannot_block()))
}

/// Leaves room for some submissions in the queue.
fn fill(gpu: &Device, room: u32) {
    ok(pollster::block_on(gpu.wait_async()));
    let busy = ok(gpu.alloc::<u32>(4));
    for value in room..256 {
        let mut batch = gpu.batch();
        ok(batch.fill(&busy, value));
        drop(ok(batch.submit_async()));
    }
}

#[test]
fn full_queues_are_awaited_by_decoders() {
    let (model, prompts) = (model(Stored::Q4_1), [tokens(5, 20), tokens(8, 9)]);
    let greedy = Sampling::new().max_tokens(50);
    let sampled = Sampling::new().max_tokens(9).temperature(0.8).repetition_penalty(1.2).seed(3);
    let (gpu, mut decoder) = (nonblocking(), load(&model, &cpu()));
    let mut awaited = load(&model, &gpu);
    for (room, options) in [(0, &greedy), (0, &sampled), (1, &greedy), (2, &sampled)] {
        for prompt in &prompts {
            let generation = ok(decoder.complete_tokens(prompt, options));
            let wanted: String = generation.map(ok).collect();
            fill(&gpu, room);
            let found: String = pollster::block_on(async {
                let mut generation = ok(awaited.complete_tokens_async(prompt, options).await);
                let mut pieces = Vec::new();
                loop {
                    fill(&gpu, room);
                    match generation.next_async().await {
                        Some(piece) => pieces.push(ok(piece)),
                        None => break pieces.concat(),
                    }
                }
            });
            assert_eq!(found, wanted, "room for {room}: {options:?}");
            fill(&gpu, room);
            ok(pollster::block_on(awaited.clear_async()));
            fill(&gpu, room);
            let logits = ok(pollster::block_on(awaited.logits_async(prompt)));
            ok(decoder.clear());
            assert_eq!(logits, ok(decoder.logits(prompt)), "room for {room}");
        }
    }
}

#[test]
fn full_queues_are_awaited_by_encoders() {
    let folder = ok(tempfile::tempdir());
    Bert::random(7).write(folder.path());
    let (gpu, encoder) = (nonblocking(), ok(Encoder::load(folder.path(), &cpu())));
    let awaited = ok(Encoder::load(folder.path(), &gpu));
    // Several batches, whose results are joined.
    let texts: Vec<String> = (0..70).map(|n| format!("w{} w{}", n % 9 + 5, n % 7 + 5)).collect();
    for texts in [&texts[..1], &texts] {
        fill(&gpu, 0);
        let found = ok(pollster::block_on(awaited.embed_async(texts)));
        assert_eq!(found, ok(encoder.embed(texts)));
    }
}

#[test]
fn futures_may_move_to_other_threads() {
    fn check<T: Send>(future: T) {
        drop(future);
    }
    let (model, gpu) = (model(Stored::Q4_1), cpu());
    let mut decoder = load(&model, &gpu);
    let (prompt, options) = (tokens(5, 4), Sampling::new().max_tokens(3));
    check(decoder.logits_async(&prompt));
    check(decoder.generate_with_async("x", &options));
    let mut generation = ok(decoder.complete_tokens(&prompt, &options));
    check(generation.next_async());
    check(generation);
}
