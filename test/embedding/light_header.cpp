// Compiled, not run: the header for embedders pulls in nothing heavy.
#include <helios.hpp>

#if defined(BOOST_ASIO_VERSION) || defined(BOOST_ASIO_DETAIL_CONFIG_HPP) || defined(BOOST_BEAST_VERSION)
#error "helios.hpp includes Asio or Beast"
#endif
#if defined(CUDART_VERSION) || defined(CUDA_VERSION) || defined(__CUDA_RUNTIME_H__)
#error "helios.hpp includes CUDA"
#endif
#if defined(SPDLOG_VERSION) || defined(FMT_VERSION) || defined(CLI11_VERSION) || defined(BOOST_JSON_NS_BEGIN)
#error "helios.hpp includes a library that its users did not ask for"
#endif
