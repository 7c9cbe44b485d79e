enable f16;
enable wgpu_int16;
struct S0 {
    m0: array<vec4<u32>, 1>,
    m1: i32,
    m2: vec4<u16>,
}
struct S1 {
    m0: u32,
    m1: vec4<u32>,
    m2: vec4<i32>,
}
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read> in1: array<vec2<i32>>;
@group(0) @binding(2) var<storage, read> in2: array<array<mat3x4<f64>, 1>>;
@group(0) @binding(3) var<uniform> parameters3: S1;
var<immediate> constant4: vec2<f32>;
@group(0) @binding(4) var<storage, read_write> out5: array<vec4<u64>>;
var<private> own6: i16;
var<private> own7: i32;
var<workgroup> shared8: array<u16, 6>;
var<workgroup> shared9: array<f32, 6>;

fn tame_f32(x: f32) -> f32 {
    return floor(clamp(x, f32(-64.0f), f32(64.0f)) * 4.0f) * 0.25f;
}
fn tame_vec3f32(x: vec3<f32>) -> vec3<f32> {
    return floor(clamp(x, vec3<f32>(-64.0f), vec3<f32>(64.0f)) * 4.0f) * 0.25f;
}
fn tame_mat2x3f32(x: mat2x3<f32>) -> mat2x3<f32> {
    return mat2x3<f32>(
        floor(clamp(x[0], vec3<f32>(-64.0f), vec3<f32>(64.0f)) * 4.0f) * 0.25f,
        floor(clamp(x[1], vec3<f32>(-64.0f), vec3<f32>(64.0f)) * 4.0f) * 0.25f,
    );
}
fn tame_f64(x: f64) -> f64 {
    return floor(clamp(x, f64(-262144.0lf), f64(262144.0lf)) * 16.0lf) * 0.0625lf;
}
fn f0(p0: i64, p1: S1, p2: S1) -> vec3<f32> {
    if all(vec4<bool>((vec3<bool>(((words[13u % arrayLength(&words)] & 1u) == 1u)) == vec3<bool>(false, true, true)), (((words[11u % arrayLength(&words)] & 1u) == 1u) && false))) {
        var v10: array<vec2<f64>, 5> = array<vec2<f64>, 5>(vec2<f64>(-1.25lf), vec2<f64>(0.75lf), vec2<f64>(-2.0lf), vec2<f64>(-1.75lf), vec2<f64>(0.5lf, 1.75lf));
    }
    if (select((((words[7u % arrayLength(&words)] & 1u) == 1u) || false), (p2.m2[1] >= 4i), (((words[12u % arrayLength(&words)] & 1u) == 1u) && true)) == true) {
        var v11: f32 = 2.0f;
        var v12: vec2<u32> = vec2<u32>(unpack2x16float(((p1.m1.w + 3u * words[2]) & 0x03ff03ffu) | 0x3c003c00u));
    } else {
        var v13: vec4<u32> = firstLeadingBit(countLeadingZeros(vec4<u32>(p2.m2)));
        for (var k14 = 0u; k14 < 1u; k14++) {
            v13[(k14 * 3u + 2u) % 4u] = v13.y;
            break;
        }
    }
    var v15: vec3<i16> = select(sign(select(vec3<i16>(own6), vec3<i16>(i16(-32768)), true)), vec3<i16>(i16(27995), i16(-4), i16(745)), ((vec3<f32>(constant4[1]) < vec3<f32>(1.75f, -4.0f, -2.0f)) != vec3<bool>(false, true, false)));
    return tame_vec3f32(clamp(vec4<f32>(constant4[0]).zyx, min((vec3<f32>(constant4[1]) + vec3<f32>(-1.5f, -0.25f, 6.25f)), vec3<f32>(6.0f)), max((vec3<f32>(constant4[1]) + vec3<f32>(-1.5f, -0.25f, 6.25f)), vec3<f32>(6.0f))));
}

@compute @workgroup_size(1, 1, 6)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(global_invocation_id) id: vec3<u32>,
) {
    let me = (group.x + groups.x * (group.y + groups.y * group.z)) * 6u + lane;
    let total = groups.x * groups.y * groups.z * 6u;
    let back = total - 1u - me;
    let twin = select(me, me ^ 1u, (me | 1u) < total);
    own7 = vec4<i32>(out5[back * 3u + 0u].wzyx).y;
    out5[back * 3u + 0u] = out5[back * 3u + 2u].yxwz.wzyx;
    for (var k16 = 0u; k16 < 2u; k16 += 2u) {
        if any((vec3<bool>(true, vec2<bool>(false)) & (vec3<u32>(arrayLength(&words)) != vec3<u32>(0u)))) {
            var v17: array<f64, 4> = array<f64, 4>(in2[(~(u32(abs(i32(me) - i32(19u))) * 3u + 19u)) % arrayLength(&in2)][group.x % 1u][0][1], tame_f64((in2[min((~((k16 / 2u) - 22u)), arrayLength(&in2) - 1u)][k16][0][min((min(me, 6u) * 0x80000001u), 3u)] / 8.0)), sign(in2[twin][0][min(lane, 2u)][(k16 / 2u)]), in2[arrayLength(&words) % arrayLength(&in2)][((min(me, 0u) * 0x80000001u) * 3u + 1u) % 1u][(2u - min(lane, 2u))][1]);
            var v18: vec3<f32> = vec3<f32>(1.25f);
            for (var k19 = 0u; k19 < 2u; k19++) {
                var v20: array<u64, 2> = array<u64, 2>(9223372036854775807lu, 585lu);
                var v21: vec4<u64> = vec4<u64>(vec3<u64>(min(vec3<u64>(out5[back * 3u + 0u].w), vec3<u64>(9223372036854775807lu))), u64((id.x >= groups.x)));
                var v22: mat2x3<f32> = tame_mat2x3f32(((saturate(v18[1]) * (mat3x3<f32>(v18, v18, v18) * mat2x3<f32>(vec3<f32>(0.75f, 1.5f, -4.25f), vec3<f32>(4.75f)))) - (mat2x3<f32>(v18, v18) * (constant4.y % 4.0))));
            }
        } else {
            var v23: f64 = (f64((((words[0u % arrayLength(&words)] & 1u) == 1u) != true)) / 8.0);
            var v24: u64 = u64(in1[u32(abs(i32((me + 28u)) - i32(24u))) % arrayLength(&in1)].y);
            var v25: u64 = select((out5[back * 3u + 1u] % out5[back * 3u + 2u]), select(out5[back * 3u + 1u], vec4<u64>(18446744073709551612lu, 18446744073709551610lu, 9223372036854775808lu, 18446744073709551615lu), false), (((words[11u % arrayLength(&words)] & 1u) == 1u) || false)).y;
        }
        var v26: S0 = S0(array<vec4<u32>, 1>(vec4<u32>(2147483646u, 986535113u, 2147483646u, 2147483647u)), i32(-2116296255), vec4<u16>(u16(545)));
    }
    if select((((words[7u % arrayLength(&words)] & 1u) == 1u) && true), all(vec2<bool>(((words[1u % arrayLength(&words)] & 1u) == 1u))), (-1.75f >= constant4.x)) {
        shared8[min(lane, 5u)] = ((u16(id.z) >> insertBits(arrayLength(&in1), 4294967293u, id.x, groups.x)) / select(u16(8192), u16(out5[back * 3u + 1u][u32(clamp(i32(lane) - 1i, 0i, 3i))]), (constant4.y >= constant4.x)));
    }
    if ((arrayLength(&in1) <= id.x) && all(vec3<bool>(((words[0u % arrayLength(&words)] & 1u) == 1u)))) {
        shared9[(5u - lane)] = tame_f32((((-constant4.x) / 4.0) % 4.0));
    }
    workgroupBarrier();
    out5[back * 3u + 2u][(lane & 4u) % 4u] = u64((all(vec4<bool>(((words[3u % arrayLength(&words)] & 1u) == 1u))) || true));
    let v27 = abs(shared8[1]);
    out5[back * 3u + 1u][group.x % 4u] /= (((out5[back * 3u + 1u][min(lane, 3u)] << parameters3.m1.w) + (out5[back * 3u + 0u][3] + 386lu)) + u64(clamp(6lu, min(out5[back * 3u + 0u][1], 281474976710656lu), max(out5[back * 3u + 0u][1], 281474976710656lu))));
    for (var k28 = 0u; k28 < min(1u, countTrailingZeros(parameters3.m1).x); k28++) {
        var v29: array<vec3<u64>, 1> = array<vec3<u64>, 1>(vec3<u64>(451lu));
        v29[min(groups.y, 0u)] = ((out5[back * 3u + 2u].zyx | (v29[(((me / 2u) & 0u) ^ 0u) % 1u] * v29[(max((~(k28 * 0x80000001u)), 1u) - 1u) % 1u])) / (abs(v29[u32(clamp(i32(lane) - 1i, 0i, 0i))]) + (v29[(0u - min(lane, 0u))].z << id.x)));
    }
    workgroupBarrier();
    var v30: f32 = tame_f32((min((constant4[(1u - min(lane, 1u))] / 8.0), f32(((words[8u % arrayLength(&words)] & 1u) == 1u))) / 8.0));
    var v31: vec2<u64> = (select(vec2<u64>(vec2<bool>(((words[2u % arrayLength(&words)] & 1u) == 1u))), (vec2<u64>(out5[back * 3u + 2u].x) ^ vec2<u64>(9223372036854775807lu)), (constant4 >= constant4)) << select(clamp(vec2<u32>(524288u), min(vec2<u32>(id.z), vec2<u32>(4294967291u, 6u)), max(vec2<u32>(id.z), vec2<u32>(4294967291u, 6u))), vec2<u32>(545u, 378u), (vec2<bool>(((words[11u % arrayLength(&words)] & 1u) == 1u)) | vec2<bool>(true, true))));
    out5[back * 3u + 0u].y = max((out5[back * 3u + 1u] >> parameters3.m1), (vec4<u64>(9223372036854775808lu) >> parameters3.m1)).x;
    if bool(clamp(in1[((max(u32(abs(i32(lane) - i32(12u))), 28u) - 28u) * 0x80000001u) % arrayLength(&in1)].x, min(in1[back].x, 2147483646i), max(in1[back].x, 2147483646i))) {
        var v32: i64 = i64(select(((words[5u % arrayLength(&words)] & 1u) == 1u), true, true));
        switch (bitcast<u32>(abs(ldexp(constant4.x, 3i)) + 1.0) % 9u) {
            case 0u: {
                var v33: u32 = vec4<u32>(vec4<i64>(v32)).xxyy.w;
                if (constant4.x >= v30) {
                    v32 = (-1li);
                } else {
                    own7 = (countLeadingZeros((i32(-2147483648) >> groups.x)) ^ dot4I8Packed(pack4xI8(parameters3.m2), parameters3.m1.y));
                    out5[back * 3u + 0u] = (vec4<u64>(vec3<u64>(v31.x, v31), (out5[back * 3u + 2u][2] - out5[back * 3u + 1u][2])) >> (~insertBits(vec4<u32>(1129558421u), parameters3.m1, parameters3.m1.y, id.z)));
                }
                var v34: vec4<u64> = out5[back * 3u + 1u].wzyx;
            }
            case 1u: {
                for (var k35 = 0u; k35 < min(3u, insertBits(bitcast<u32>(abs(constant4[(1u - min(lane, 1u))]) + 1.0), u32(constant4[min(lane, 1u)]), parameters3.m1[3], select(id.x, me, true))); k35++) {
                    var v36: f32 = saturate(vec4<f32>(constant4[min((me * 0x80000001u), 1u)]).x);
                    var v37: array<u16, 5> = array<u16, 5>(u16(32767), u16(65535), u16(4096), u16(32766), u16(32768));
                }
                var v38: S0 = S0(array<vec4<u32>, 1>(vec4<u32>(1272624121u, 2147483648u, 1u, 3u)), 16i, vec4<u16>(u16(46861), u16(56298), u16(2), u16(62279)));
            }
            case 2u: {
                var v39: i16 = max(select((own6 + own6), i16(((words[8u % arrayLength(&words)] & 1u) == 1u)), (((words[2u % arrayLength(&words)] & 1u) == 1u) | true)), i16((((words[11u % arrayLength(&words)] & 1u) == 1u) || true)));
            }
            case 3u: {
                switch (vec4<u32>(vec3<u32>(2147483646u, 2147483646u, 67108864u), groups.y).w % 9u) {
                    case 0u: {
                        own6 /= ((max(own6, i16(26597)) - sign(own6)) + clamp(i16(((words[15u % arrayLength(&words)] & 1u) == 1u)), min(abs(own6), sign(own6)), max(abs(own6), sign(own6))));
                    }
                    default: {
                        v32 = v32;
                    }
                }
                switch (4294967289u % 9u) {
                    case 0u: {
                        out5[back * 3u + 2u] = (0lu * (vec4<u64>(vec4<bool>(((words[5u % arrayLength(&words)] & 1u) == 1u))) / vec4<u64>(29lu)));
                    }
                    case 1u: {
                        var v40: u16 = u16(32767);
                        own6 = own6;
                    }
                    case 2u: {
                        own6 -= (i16(-1) << pack4xU8Clamp(firstLeadingBit(parameters3.m1)));
                    }
                    case 3u: {
                        v31[arrayLength(&in1) % 2u] = max(u64(parameters3.m2[min(min(select(lane, 3u - lane, (((words[11u % arrayLength(&words)] & 1u) == 1u) && false)), 5u), 3u)]), max(out5[back * 3u + 1u][min(lane, 3u)], out5[back * 3u + 2u].w));
                        v32 = i64((extractBits(parameters3.m2[1], parameters3.m1[min(lane, 3u)], words[back]) >= (own7 << groups.y)));
                        let v41 = dot(firstLeadingBit(vec4<i32>(vec3<i32>(2147483646i, 874i, i32(-6)), parameters3.m2[(min(me, 7u) / 2u) % 4u])), bitcast<vec4<i32>>(abs(round(vec4<f32>(constant4[min(lane, 1u)]))) + 1.0));
                    }
                    default: {
                        var v42: vec3<bool> = (vec3<f32>(-2.0f, 2.0f, -7.0f) >= (f0(v32, S1(2903244697u, vec4<u32>(5u, 2u, 33554432u, 2048u), vec4<i32>(i32(-5), i32(-230759187), 787i, 67108864i)), parameters3) % 4.0));
                        v32 = ((v32 % 1li) * (vec4<i64>(v32) | vec4<i64>(140737488355328li, 536870912li, 9223372036854775806li, (-2li)))).w;
                        v32 = i64(((v42[1] || v42[(max((2u - (lane * 0x80000001u)), 3u) - 3u) % 3u]) & (v42[min(select(lane, 2u - lane, v42[2]), 5u) % 3u] == false)));
                    }
                }
                let v43 = (vec3<u32>(sign(vec3<i32>(in1[me][(1u - min(lane, 1u))]))) == countTrailingZeros(vec3<u32>(1048576u, arrayLength(&in1), parameters3.m1[min((3u - min((3u - lane), 6u)), 3u)])));
            }
            default: {
                out5[back * 3u + 0u][groups.y % 4u] |= (u64(words[min(23u, arrayLength(&words) - 1u)]) * u64((!((words[15u % arrayLength(&words)] & 1u) == 1u))));
                if vec4<bool>(vec4<f32>(constant4[1])).w {
                    out5[back * 3u + 2u] = vec4<u64>(u64(sign(own7)), u64(any(vec4<bool>(((words[0u % arrayLength(&words)] & 1u) == 1u)))), out5[back * 3u + 0u].xxyy.y, out5[back * 3u + 0u].z);
                    out5[back * 3u + 2u] = vec4<u64>(vec4<u16>(vec4<i16>(own6)));
                    v31 = vec2<u64>(vec4<u32>(vec3<u32>(3448294721u), arrayLength(&in1)).zz);
                }
                for (var k44 = 0u; k44 < 4u; k44 += 2u) {
                    var v45: u64 = u64(arrayLength(&in1));
                }
            }
        }
        var v46: vec3<u32> = vec3<u32>(16u);
    }
    if ((-1.25f <= v30) && true) {
        shared8[lane] = u16(((((words[1u % arrayLength(&words)] & 1u) == 1u) == true) || vec4<bool>(((words[11u % arrayLength(&words)] & 1u) == 1u)).y));
    }
    shared9[min(lane, 5u)] = modf(trunc((constant4[1] / 8.0))).fract;
    workgroupBarrier();
    for (var k47 = 0u; k47 < min(2u, abs(dot4U8Packed(arrayLength(&in1), groups.y))); k47++) {
        var v48: vec2<u64> = (v31 + (u64(((words[10u % arrayLength(&words)] & 1u) == 1u)) << insertBits(groups.x, words[(15u - (15u - lane)) % arrayLength(&words)], parameters3.m1.z, group.x)));
        v30 = tame_f32(frexp(abs(v30)).fract);
        if (!(((words[6u % arrayLength(&words)] & 1u) == 1u) & true)) {
            switch (countLeadingZeros(pack4xI8(parameters3.m2)) % 9u) {
                case 0u: {
                    out5[back * 3u + 1u] = (select(vec4<u64>(vec4<bool>(((words[4u % arrayLength(&words)] & 1u) == 1u))), vec4<u64>(vec4<bool>(((words[3u % arrayLength(&words)] & 1u) == 1u))), (vec4<bool>(((words[5u % arrayLength(&words)] & 1u) == 1u)) != vec4<bool>(false, true, true, true))) - vec4<u64>(vec4<bool>(parameters3.m1)));
                    out5[back * 3u + 1u][u32(clamp(i32(lane) - 1i, 0i, 3i))] = abs(out5[back * 3u + 0u][select(k47, 3u - k47, true)]);
                    out5[back * 3u + 2u][(k47 + 2u)] = ((vec4<u64>(9223372036854775808lu, 7lu, 264lu, 131072lu) / out5[back * 3u + 0u]).x & (u64(parameters3.m2.x) + u64(((words[11u % arrayLength(&words)] & 1u) == 1u))));
                }
                default: {
                    var v49: S0 = S0(array<vec4<u32>, 1>(vec4<u32>(512u)), 7i, vec4<u16>(u16(32767)));
                    v49 = v49;
                    v31[min(select(((me ^ 1u) ^ 1u), 1u - ((me ^ 1u) ^ 1u), true), 1u)] = (u64(((words[5u % arrayLength(&words)] & 1u) == 1u)) + u64(((words[3u % arrayLength(&words)] & 1u) == 1u)));
                }
            }
            own7 = vec4<i32>(vec4<f32>(vec3<f32>(3.0f), constant4[0])).y;
            var v50: u64 = max(out5[back * 3u + 0u][parameters3.m1.x % 4u], (v48.y + out5[back * 3u + 2u][min(parameters3.m1.z, 3u)]));
        }
    }
    v30 = tame_f32(fma(vec4<f32>(constant4[0]).wzyx.x, frexp(constant4.y).fract, v30));
    workgroupBarrier();
    var v51: i32 = parameters3.m2.w;
    own7 = in1[15u % arrayLength(&in1)].x;
    out5[back * 3u + 0u] = vec4<u64>((vec4<bool>(vec3<bool>(true, false, true), true) != (vec4<bool>(((words[14u % arrayLength(&words)] & 1u) == 1u)) == vec4<bool>(false))));
    out5[back * 3u + 1u] = clamp(vec4<u64>(vec4<i64>(i64(words[6u % arrayLength(&words)]))), min(out5[back * 3u + 0u], vec4<u64>(274877906944lu)), max(out5[back * 3u + 0u], vec4<u64>(274877906944lu)));
    out5[back * 3u + 2u] = (~(out5[back * 3u + 1u] * out5[back * 3u + 2u])).xxyy;
}
