#pragma once
// The three Unicode classes that pre-tokenizers ask about. The ranges come from tools/make_unicode_tables.py.

namespace helios::model {

/// General category L.
bool is_letter(char32_t code) noexcept;
/// General category N (digits, letter numbers, fractions).
bool is_number(char32_t code) noexcept;
/// The property White_Space: what \s means in the tokenizers' expressions.
bool is_space(char32_t code) noexcept;

}  // namespace helios::model
