// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// identityOf returns the same for two templates if and only if Kubernetes considers them
// the same: they do not differ, or only in the label pod-template-hash and in how
// quantities are written. It is not the hash in that label, which depends on collisions
// and on the version of Kubernetes.
func identityOf(template *corev1.PodTemplateSpec) string {
	plain := template.DeepCopy()
	delete(plain.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	spell(reflect.ValueOf(plain).Elem())
	text, err := json.Marshal(plain)
	if err != nil { // never happens for a template that the API server returns
		return fmt.Sprintf("unreadable: %v", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

var quantity = reflect.TypeFor[resource.Quantity]()

// spell writes equal values in one form: quantities as their number, and empty values as
// absent.
func spell(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spell(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == quantity {
			v.Set(reflect.ValueOf(plainly(v.Interface().(resource.Quantity))))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spell(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spell(v.Index(i))
		}
		dropEmpty(v)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			spell(value)
			v.SetMapIndex(key, value)
		}
		dropEmpty(v)
	default:
	}
}

func dropEmpty(v reflect.Value) {
	if v.Len() == 0 {
		v.SetZero()
	}
}

// mostDigits is the maximum number of digits that a number is written with: the largest
// quantity in Kubernetes, counted in bytes, has nineteen.
const mostDigits = 64

// plainly writes equal numbers in one form. A number that is too long for that, such as
// 1e1000000, is never written out: a hash of its digits and its exponent replaces it.
func plainly(q resource.Quantity) resource.Quantity {
	number := q.AsDec()
	digits, exponent := number.UnscaledBig(), -int64(number.Scale())
	if digits.BitLen() <= 3*mostDigits && exponent <= mostDigits {
		return resource.MustParse(number.String())
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, digits.Sign(), exponent)
	_, _ = hash.Write(digits.Bytes())
	return *resource.NewQuantity(int64(hash.Sum64()>>1), resource.DecimalSI)
}
