// A small stack machine: switch with shared cases, early exits, and a loop that need not end.

@group(0) @binding(0) var<storage, read> program: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<i32>;

fn run(input: i32) -> i32 {
    var stack: array<i32, 16>;
    var top = 0u;
    stack[0] = input;
    var pc = 0u;
    loop {
        let op = program[pc];
        pc++;
        switch op & 0xfu {
            case 0u: {
                return stack[top];
            }
            case 1u: {
                top++;
                stack[top] = i32(op >> 4u);
            }
            case 2u, 3u: {
                let right = stack[top];
                top--;
                if (op & 1u) == 0u {
                    stack[top] += right;
                } else {
                    stack[top] /= right;
                }
            }
            case 4u: {
                if stack[top] < 0 {
                    continue;
                }
                pc = op >> 4u;
            }
            default: {
                break;
            }
        }
        if pc >= arrayLength(&program) {
            break;
        }
    }
    return -1;
}

@compute @workgroup_size(64)
fn stack_machine(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&results) {
        results[id.x] = run(results[id.x]);
    }
}
