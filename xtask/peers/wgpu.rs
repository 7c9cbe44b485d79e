//! Doubles four numbers with wgpu.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const SHADER: &str = "
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&input) {
        output[id.x] = input[id.x] * 2.0;
    }
}
";

fn main() {
    let (device, queue) = open();
    let input: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0]
        .into_iter()
        .flat_map(f32::to_ne_bytes)
        .collect();
    let result = double(&device, &queue, &input);
    let expected: Vec<u8> = [2.0f32, 4.0, 6.0, 8.0]
        .into_iter()
        .flat_map(f32::to_ne_bytes)
        .collect();
    assert_eq!(result, expected);
}

fn open() -> (wgpu::Device, wgpu::Queue) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = ready(instance.request_adapter(&Default::default())).expect("an adapter");
    ready(adapter.request_device(&Default::default())).expect("a device")
}

/// Returns the value of a future that is immediately ready, as these are outside browsers.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a future that should be ready is not"),
    }
}

fn double(device: &wgpu::Device, queue: &wgpu::Queue, data: &[u8]) -> Vec<u8> {
    let storage = wgpu::BufferUsages::STORAGE;
    let input = buffer(device, data.len(), storage | wgpu::BufferUsages::COPY_DST);
    let output = buffer(device, data.len(), storage | wgpu::BufferUsages::COPY_SRC);
    let readback = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let readback = buffer(device, data.len(), readback);
    queue.write_buffer(&input, 0, data);
    let pipeline = pipeline(device);
    let group = group(device, &pipeline, [&input, &output]);
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&output, 0, &readback, 0, data.len() as u64);
    queue.submit([encoder.finish()]);
    readback.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("mapped"));
    device
        .poll(wgpu::PollType::wait_indefinitely())
        .expect("the device answers");
    readback
        .get_mapped_range(..)
        .expect("a mapped range")
        .to_vec()
}

fn buffer(device: &wgpu::Device, size: usize, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: size as u64,
        usage,
        mapped_at_creation: false,
    })
}

fn pipeline(device: &wgpu::Device) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(SHADER.into()),
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    })
}

fn group(
    device: &wgpu::Device,
    pipeline: &wgpu::ComputePipeline,
    buffers: [&wgpu::Buffer; 2],
) -> wgpu::BindGroup {
    let [input, output] = buffers.map(wgpu::Buffer::as_entire_binding);
    let input = wgpu::BindGroupEntry {
        binding: 0,
        resource: input,
    };
    let output = wgpu::BindGroupEntry {
        binding: 1,
        resource: output,
    };
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[input, output],
    })
}
