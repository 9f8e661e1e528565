// What kvferry is measured against, apart from its own module: nothing of it is linked into kvferry.
module kvferry/tools/bench/peers

go 1.26

tool github.com/hdt3213/rdb

require (
	github.com/bytedance/gopkg v0.1.3 // indirect
	github.com/bytedance/sonic v1.15.5 // indirect
	github.com/bytedance/sonic/loader v0.5.3 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/cloudwego/iasm v0.2.0 // indirect
	github.com/hdt3213/rdb v1.2.0 // indirect
	github.com/klauspost/cpuid/v2 v2.2.9 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	golang.org/x/arch v0.9.0 // indirect
	golang.org/x/sys v0.24.0 // indirect
)
