// Structures with padding: each particle is pulled towards a point, one step of time.

struct Particle {
    position: vec3f,
    mass: f32,
    velocity: vec3f,
}

struct World {
    centre: vec3f,
    pull: f32,
    dt: f32,
}

@group(0) @binding(0) var<uniform> world: World;
@group(0) @binding(1) var<storage, read_write> particles: array<Particle>;

fn force(p: Particle) -> vec3f {
    let way = world.centre - p.position;
    return way * (world.pull * p.mass / max(dot(way, way), 1e-6));
}

@compute @workgroup_size(64)
fn step_all(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&particles) {
        return;
    }
    var p = particles[id.x];
    p.velocity += force(p) * (world.dt / p.mass);
    p.position += p.velocity * world.dt;
    particles[id.x] = p;
}
