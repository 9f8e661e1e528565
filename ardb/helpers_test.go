package ardb

import "kvferry/ardb/codec"

func operand(op uint16, args ...codec.Data) []byte {
	return codec.AppendValue(nil, &codec.Value{Kind: codec.KindOperand, Op: op}, args...)
}

func text(s string) codec.Data { return codec.TextData([]byte(s)) }

func str(d codec.Data) []byte { return codec.AppendValue(nil, &codec.Value{Kind: codec.KindString}, d) }

func strTTL(d codec.Data, ms int64) []byte {
	return codec.AppendValue(nil, &codec.Value{Kind: codec.KindString, ExpireMS: ms}, d)
}

func field(d codec.Data) []byte {
	return codec.AppendValue(nil, &codec.Value{Kind: codec.KindField}, d)
}
