//! The implementation of `Element` for one structure.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Index, Member, Result, Token};

/// Generates the implementation.
///
/// # Errors
/// If the type cannot be an element.
pub(crate) fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input)?;
    check_generics(input)?;
    check_repr(input)?;
    Ok(generate(input, fields))
}

/// Returns the fields of a structure; an error for other types, and without fields.
fn fields(input: &DeriveInput) -> Result<&Fields> {
    let name = &input.ident;
    let reject = |what: &str| {
        Err(Error::new_spanned(name, format!("`{name}` cannot be an `Element`: {what}")))
    };
    match &input.data {
        Data::Enum(_) => {
            reject("not every bit pattern is a value of an enum; store it in an integer field")
        }
        Data::Union(_) => reject("a union may have uninitialised bytes; use a structure"),
        Data::Struct(data) if data.fields.is_empty() => {
            reject("it has no fields, and a buffer needs elements of at least one byte")
        }
        Data::Struct(data) => Ok(&data.fields),
    }
}

fn check_generics(input: &DeriveInput) -> Result<()> {
    if input.generics.params.is_empty() {
        return Ok(());
    }
    let name = &input.ident;
    Err(Error::new_spanned(
        &input.generics,
        format!(
            "`{name}` cannot be an `Element`: generic parameters are not supported, because its \
             layout must be known here; use concrete types, and no references"
        ),
    ))
}

/// Requires `repr(C)`, and rejects `packed`.
fn check_repr(input: &DeriveInput) -> Result<()> {
    let name = &input.ident;
    let mut is_c = false;
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("packed") {
                return Err(meta.error(format!(
                    "`{name}` cannot be an `Element`: WGSL has no packed structures; remove \
                     `packed`"
                )));
            }
            is_c |= meta.path.is_ident("C");
            // `align(16)`: the size check detects padding that it adds.
            if meta.input.peek(syn::token::Paren) {
                let value;
                syn::parenthesized!(value in meta.input);
                value.parse::<TokenStream>()?;
            } else if meta.input.peek(Token![=]) {
                return Err(meta.error("`repr` does not accept `=`"));
            }
            Ok(())
        })?;
    }
    if is_c {
        return Ok(());
    }
    Err(Error::new_spanned(
        name,
        format!(
            "`{name}` cannot be an `Element`: without `#[repr(C)]` the order of its fields is \
             unspecified; write `#[repr(C)]` above it"
        ),
    ))
}

fn generate(input: &DeriveInput, fields: &Fields) -> TokenStream {
    let name = &input.ident;
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let bounds = fields.iter().map(|field| {
        let ty = &field.ty;
        // The span of the field's type is the location of the error.
        quote_spanned! { ty.span() => is_element::<#ty>(); }
    });
    let members: Vec<_> = fields.members().collect();
    let names = members.iter().map(member_name);
    let padding = format!(
        "`{name}` cannot be an `Element`: it has padding bytes, between its fields or at its end. \
         Add a field for them, such as `_pad: u32` or `_pad: [f32; 2]`; as in WGSL, where vec3 is \
         aligned to 16 bytes and the size of a structure is a multiple of its alignment"
    );
    let name_text = name.to_string();
    let assertion = quote_spanned! { name.span() =>
        const _: () = ::core::assert!(
            ::core::mem::size_of::<#name>() == #(::core::mem::size_of::<#types>())+*,
            #padding
        );
    };
    quote! {
        const _: () = {
            const fn is_element<T: ::scry_gpu::Element>() {}
            const _: () = { #(#bounds)* };
            #assertion

            // SAFETY: a `repr(C)` structure without padding, as asserted above; each field is an
            // element, so every byte belongs to one, and is listed with its offset.
            unsafe impl ::scry_gpu::Element for #name {
                const LAYOUT: ::scry_gpu::ElementLayout = ::scry_gpu::ElementLayout::Struct {
                    name: #name_text,
                    size: ::core::mem::size_of::<#name>(),
                    fields: &[#(::scry_gpu::Field {
                        name: #names,
                        offset: ::core::mem::offset_of!(#name, #members),
                        size: ::core::mem::size_of::<#types>(),
                        layout: &<#types as ::scry_gpu::Element>::LAYOUT,
                    }),*],
                };
            }
        };
    }
}

fn member_name(member: &Member) -> String {
    match member {
        Member::Named(name) => syn::ext::IdentExt::unraw(name).to_string(),
        Member::Unnamed(Index { index, .. }) => index.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn rejection(input: &DeriveInput) -> String {
        implement(input).unwrap_err().to_string()
    }

    #[test]
    fn fields_have_name_and_type() {
        let input = parse_quote! {
            #[repr(C)]
            struct Ray { origin: [f32; 3], r#type: u32 }
        };
        let text = implement(&input).unwrap().to_string();
        assert!(text.contains("unsafe impl :: scry_gpu :: Element for Ray"), "{text}");
        assert!(
            text.contains(
                "name : \"type\" , offset : :: core :: mem :: offset_of ! (Ray , r#type)"
            )
        );
        assert!(
            text.contains("size_of :: < Ray > () == :: core :: mem :: size_of :: < [f32 ; 3] >")
        );
        assert!(text.contains("`Ray` cannot be an `Element`: it has padding bytes"));
    }

    #[test]
    fn tuple_structures_name_fields_by_index() {
        let text = implement(&parse_quote!(
            #[repr(C)]
            struct Pair(f32, u32);
        ))
        .unwrap()
        .to_string();
        assert!(text.contains("name : \"1\" , offset : :: core :: mem :: offset_of ! (Pair , 1)"));
    }

    #[test]
    fn larger_alignments_are_accepted() {
        implement(&parse_quote!(
            #[repr(C, align(16))]
            struct Aligned([f32; 4]);
        ))
        .unwrap();
        implement(&parse_quote!(
            #[repr(align(16))]
            #[repr(C)]
            struct Aligned([f32; 4]);
        ))
        .unwrap();
    }

    #[test]
    fn missing_repr_c_is_rejected() {
        assert_eq!(
            rejection(&parse_quote!(
                struct Loose {
                    a: f32,
                }
            )),
            "`Loose` cannot be an `Element`: without `#[repr(C)]` the order of its fields is \
             unspecified; write `#[repr(C)]` above it"
        );
        assert!(
            rejection(&parse_quote!(
                #[repr(transparent)]
                struct Loose(f32);
            ))
            .contains("repr(C)")
        );
    }

    #[test]
    fn packed_structures_are_rejected() {
        let text = "`Tight` cannot be an `Element`: WGSL has no packed structures; remove `packed`";
        assert_eq!(
            rejection(&parse_quote!(
                #[repr(C, packed)]
                struct Tight(u8, u32);
            )),
            text
        );
        assert_eq!(
            rejection(&parse_quote!(
                #[repr(C, packed(2))]
                struct Tight(u8, u32);
            )),
            text
        );
    }

    #[test]
    fn enums_unions_and_units_are_rejected() {
        assert_eq!(
            rejection(&parse_quote!(
                #[repr(u32)]
                enum Kind {
                    A,
                    B,
                }
            )),
            "`Kind` cannot be an `Element`: not every bit pattern is a value of an enum; store it \
             in an integer field"
        );
        assert_eq!(
            rejection(&parse_quote!(#[repr(C)] union Word { f: f32, u: u32 })),
            "`Word` cannot be an `Element`: a union may have uninitialised bytes; use a structure"
        );
        assert_eq!(
            rejection(&parse_quote!(
                #[repr(C)]
                struct Nothing;
            )),
            "`Nothing` cannot be an `Element`: it has no fields, and a buffer needs elements of at \
             least one byte"
        );
    }

    #[test]
    fn generic_parameters_are_rejected() {
        let text = "`Of` cannot be an `Element`: generic parameters are not supported, because its \
                    layout must be known here; use concrete types, and no references";
        assert_eq!(
            rejection(&parse_quote!(
                #[repr(C)]
                struct Of<T> {
                    x: T,
                }
            )),
            text
        );
        assert_eq!(
            rejection(&parse_quote!(
                #[repr(C)]
                struct Of<'a> {
                    x: &'a u32,
                }
            )),
            text
        );
        assert_eq!(
            rejection(&parse_quote!(
                #[repr(C)]
                struct Of<const N: usize> {
                    x: [u32; N],
                }
            )),
            text
        );
    }
}
