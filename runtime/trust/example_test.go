package trust_test

import (
	"crypto/sha256"
	"fmt"

	"github.com/weir-mcp/weir/runtime/trust"
)

func ExamplePolicy() {
	ops := trust.GenerateKey()
	file := []byte("the bytes of a module")
	signature := []byte(ops.Sign(file).String())

	policy := trust.NewPolicy(true, ops.Public())
	signer, err := policy.Verify(sha256.Sum256(file), signature)
	fmt.Println(signer == ops.Public().ID(), err)
	_, err = policy.Verify(sha256.Sum256(file), nil)
	fmt.Println(err)
	// Output:
	// true <nil>
	// the module is not signed
}
