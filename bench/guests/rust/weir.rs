//! weir's module ABI (abi.md, Flavour 1), by hand.
#[path = "redact.rs"]
mod redact;

mod host {
    #[link(wasm_import_module = "weir")]
    extern "C" {
        pub fn input(at: *mut u8);
        pub fn output(at: *const u8, length: usize);
    }
}

#[no_mangle]
pub extern "C" fn weir_abi_v1() {}

#[no_mangle]
pub extern "C" fn weir_describe() -> i32 {
    hand_over(br#"{"interceptors":[{"name":"redact","type":"mutation","hooks":[{"events":["tools/call"],"phase":"request"}]}]}"#);
    0
}

#[no_mangle]
pub extern "C" fn weir_invoke(length: usize) -> i32 {
    let mut frame = Vec::with_capacity(length);
    unsafe {
        host::input(frame.as_mut_ptr());
        frame.set_len(length);
    }
    hand_over(&redact::answer(&frame));
    0
}

fn hand_over(b: &[u8]) {
    unsafe { host::output(b.as_ptr(), b.len()) }
}
